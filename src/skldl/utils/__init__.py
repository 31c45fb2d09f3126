"""Code that every layer uses: validation, arrays, parameters, solvers, files. Not part of the public interface."""

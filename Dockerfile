# The service in a container, without root and without a compiler:
#   docker build -t skldl .
#   docker run --rm -p 8000:8000 -e SKLDL_API_KEY -v "$PWD/faces.skldl:/models/model.skldl:ro" skldl
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY tools/package_description.py tools/
COPY src src
# What draws and compares is not needed here, nor the parts of Arrow that speak to other services. The last line shows
# that all imports are there, and keeps the bytecode of these modules alone: without it, each start would compile them again.
RUN python -m venv /opt/skldl \
 && /opt/skldl/bin/pip install --no-cache-dir --no-compile '.[serve]' \
 && /opt/skldl/bin/pip uninstall --yes matplotlib fonttools pillow contourpy kiwisolver statsmodels formulaic patsy seaborn scikit-posthocs baycomp pip \
 && find /opt/skldl \( -name tests -o -name __pycache__ -o -path '*/pyarrow/include' \) -type d -prune -exec rm -rf {} + \
 && find /opt/skldl -path '*/pyarrow/*' \( -name 'libarrow_flight.so*' -o -name 'libarrow_s3.so*' \) -delete \
 && cd / && /opt/skldl/bin/python -c "import pyarrow.csv, pyarrow.parquet, skldl.cli.serve, skldl.names, skldl.persistence, skldl.serve._app, skldl.serve._server"

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home skldl
COPY --from=build /opt/skldl /opt/skldl
ENV PATH=/opt/skldl/bin:$PATH PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
USER skldl
EXPOSE 8000
# The service ends when all requests are answered; give it time: docker stop -t 40
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["skldl", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["/models/model.skldl"]

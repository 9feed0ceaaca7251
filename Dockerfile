# Bundles the dashboard; none of these packages gets into the image. The bundler needs no install script.
FROM node:24-slim AS dashboard
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY src src
RUN node src/dashboard/build.ts

# The service only, for an external PostgreSQL: without the embedded one, tests and tools.
FROM node:24-slim
ENV NODE_ENV=production DATA_DIR=/data MALLOC_ARENA_MAX=2
WORKDIR /app
RUN mkdir /data && chown node:node /data
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional && npm cache clean --force
COPY --from=dashboard /app/src src
COPY sql sql
USER node
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 8080) + '/status').then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# As in package.json. V8 lets a heap grow to four times its live size while a process is busy, and to less between bursts: then each
# burst would begin with collecting everything.
CMD ["node", "--expose-gc", "--max-semi-space-size=32", "--heap-growing-percent=300", "src/server.ts"]

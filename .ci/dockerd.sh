# shellcheck shell=bash
# A Docker engine for tests, started by hand and gone without a trace: source this, then dockerd_start, dockerd_stop.
# It touches no firewall and no bridge: containers use the host's network or none.

dockerd_start() {
  DOCKERD_DIR=$(mktemp -d /tmp/dockerd.XXXXXX)
  export DOCKER_HOST="unix://$DOCKERD_DIR/s"
  dockerd --data-root "$DOCKERD_DIR/data" --exec-root "$DOCKERD_DIR/exec" --pidfile "$DOCKERD_DIR/pid" \
    -H "$DOCKER_HOST" --iptables=false --ip6tables=false --bridge=none --ip-forward=false \
    >"$DOCKERD_DIR/log" 2>&1 &
  DOCKERD_PID=$!
  local try
  for try in $(seq 1 100); do
    docker version >/dev/null 2>&1 && return 0
    kill -0 "$DOCKERD_PID" 2>/dev/null || break
    sleep 0.1
  done
  echo "dockerd did not start after $try looks:" >&2
  tail -n 20 "$DOCKERD_DIR/log" >&2
  dockerd_stop
  return 1
}

dockerd_stop() {
  [ -n "${DOCKERD_DIR:-}" ] || return 0
  kill -TERM "$DOCKERD_PID" 2>/dev/null || true
  wait "$DOCKERD_PID" 2>/dev/null || true
  umount "$DOCKERD_DIR/exec/netns/default" 2>/dev/null || true
  rm -rf "$DOCKERD_DIR"
  unset DOCKERD_DIR DOCKERD_PID DOCKER_HOST
}

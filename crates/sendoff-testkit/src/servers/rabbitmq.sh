# A private RabbitMQ: `sh rabbitmq.sh HOME PORT EPMD_PORT DIST_PORT TLS_PORT`, in the foreground. Started again with the
# same HOME it has kept its data. HOME/env is all that rabbitmqctl needs to find it. TLS_PORT is 0 without TLS; with it,
# HOME/ca.pem, HOME/server.pem and HOME/server.key are there. HOME/more.conf may hold more settings.
set -eu
home=$1 port=$2 epmd_port=$3 dist_port=$4 tls_port=$5
# The scripts in sbin change to Debian's account for RabbitMQ and its folders; these do not.
bin=/usr/lib/rabbitmq/bin

mkdir -p "$home/mnesia" "$home/log"
cat >"$home/rabbitmq.conf" <<CONFIG
listeners.tcp.1 = 127.0.0.1:$port
log.console = true
log.console.level = info
log.file = false
# Two cores and several nodes: what a test waits for must not wait for a crowd of idle threads.
num_acceptors.tcp = 2
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 1MB
loopback_users = none
CONFIG
if [ "$tls_port" != 0 ]; then
    cat >>"$home/rabbitmq.conf" <<CONFIG
listeners.ssl.1 = 127.0.0.1:$tls_port
ssl_options.cacertfile = $home/ca.pem
ssl_options.certfile = $home/server.pem
ssl_options.keyfile = $home/server.key
CONFIG
fi
[ ! -e "$home/more.conf" ] || cat "$home/more.conf" >>"$home/rabbitmq.conf"
echo '[].' >"$home/enabled_plugins"
cat >"$home/env" <<VARIABLES
export HOME='$home'
export ERL_EPMD_PORT=$epmd_port
export ERL_EPMD_ADDRESS=127.0.0.1
export RABBITMQ_NODENAME=sendoff-$port@localhost
export RABBITMQ_DIST_PORT=$dist_port
export RABBITMQ_CONF_ENV_FILE=/dev/null
export RABBITMQ_CONFIG_FILE='$home/rabbitmq.conf'
export RABBITMQ_ADVANCED_CONFIG_FILE='$home/advanced.config'
export RABBITMQ_ENABLED_PLUGINS_FILE='$home/enabled_plugins'
export RABBITMQ_MNESIA_BASE='$home/mnesia'
export RABBITMQ_LOG_BASE='$home/log'
export RABBITMQ_PID_FILE='$home/pid'
export PATH="$bin:\$PATH"
VARIABLES
. "$home/env"

# One scheduler, and none of its threads spins while it has nothing to do.
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 1:1 +SDio 2 +sbwt none +sbwtdcpu none +sbwtdio none"
# Replaces this shell with the virtual machine, so that signals reach it.
export RUNNING_UNDER_SYSTEMD=true
# Left to itself, Erlang would start it as a daemon that outlives everything; this one dies with the virtual machine.
setpriv --pdeathsig KILL epmd -port "$epmd_port" -address 127.0.0.1 &
exec rabbitmq-server

package pgbench

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// Names of roles and of the database. Transactions run as a role that may not run programs on the server.
const (
	adminRole = "postgres"
	benchRole = "bragg"
	database  = "bragg"
)

// commands makes the commands of a workload, for its plan and for its run.
type commands struct {
	config *config
	tools  map[string]program.Tool // empty in a plan
	folder func(disk string) string
	major  int // version of pgbench
}

// show adds a command to a plan.
func (k commands) show(p *load.Plan, c program.Command) {
	p.Program.Commands = append(p.Program.Commands, c.String())
}

func (k commands) command(name string, args ...string) program.Command {
	path := name
	if tool, known := k.tools[name]; known {
		path = tool.Path
	}
	return program.Command{Path: path, Args: args}
}

func (k commands) data() string { return k.folder(k.config.disk) + "/data" }
func (k commands) wal() string  { return k.folder(k.config.walDisk) + "/wal" }

// socket is the folder of the server's socket: beside the data, and only its user may enter it.
func (k commands) socket() string { return k.folder(k.config.disk) + "/run" }

func (k commands) initdb() program.Command {
	args := []string{"--pgdata=" + k.data(), "--username=" + adminRole, "--auth=trust", "--encoding=UTF8", "--locale=C"}
	if k.config.walDisk != k.config.disk {
		args = append(args, "--waldir="+k.wal())
	}
	c := k.command("initdb", args...)
	c.Alone = true
	return c
}

// connectionsSpare are connections of the server beside those of the clients.
const connectionsSpare = 20

// postgres is the server. Its shared memory is in files of the data folder and in its own namespace, so that none is left behind.
func (k commands) postgres() program.Command {
	args := []string{"-D", k.data(), "-c", "listen_addresses=", "-c", "unix_socket_directories=" + k.socket(),
		"-c", "dynamic_shared_memory_type=mmap", "-c", "logging_collector=off", "-c", "log_checkpoints=on",
		"-c", "max_connections=" + strconv.Itoa(k.config.clients+connectionsSpare)}
	for _, s := range k.config.settings {
		args = append(args, "-c", s.name+"="+s.value)
	}
	c := k.command("postgres", args...)
	c.Alone = true
	return c
}

// reach is how clients find the server; those of an endpoint find it in their environment.
func (k commands) reach(role string) []string {
	if k.config.endpoint != "" {
		return nil
	}
	return []string{"--host=" + k.socket(), "--username=" + role}
}

func (k commands) psql(role, db, statement string) program.Command {
	args := append([]string{"--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"}, k.reach(role)...)
	if k.config.endpoint == "" {
		args = append(args, "--dbname="+db)
	}
	return k.command("psql", append(args, "--command="+statement)...)
}

// monitor reads statements from its standard input.
func (k commands) monitor() program.Command {
	args := append([]string{"--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align"}, k.reach(adminRole)...)
	return k.command("psql", append(args, "--dbname="+adminRole)...)
}

func (k commands) initialise() program.Command {
	args := append([]string{"--initialize", "--scale=" + strconv.Itoa(k.config.scale)}, k.reach(benchRole)...)
	return k.command("pgbench", k.withDatabase(args)...)
}

func (k commands) withDatabase(args []string) []string {
	if k.config.endpoint != "" {
		return args
	}
	return append(args, database)
}

// runtimeForever ends by a signal.
const runtimeForever = 10 * 365 * 24 * time.Hour

// load is pgbench itself. It always has a runtime, because its alarm is how it is ended early.
func (k commands) load(runtime time.Duration) program.Command {
	c := k.config
	if runtime <= 0 {
		runtime = runtimeForever
	}
	seconds := int64((runtime + time.Second - 1) / time.Second)
	args := []string{"--no-vacuum", "--client=" + strconv.Itoa(c.clients), "--jobs=" + strconv.Itoa(c.threads),
		"--time=" + strconv.FormatInt(seconds, 10), "--protocol=" + c.protocol, "--log", "--log-prefix=" + k.logPrefix(), "--progress=10"}
	if k.major >= 15 {
		args = append(args, "--failures-detailed")
	}
	if c.rate > 0 {
		args = append(args, "--rate="+strconv.FormatFloat(c.rate, 'f', -1, 64))
	}
	if c.limit > 0 {
		args = append(args, "--latency-limit="+strconv.FormatFloat(float64(c.limit)/1e6, 'f', -1, 64))
	}
	for _, s := range c.scripts {
		if s.own {
			args = append(args, "--file="+k.script(s), "--scale="+strconv.Itoa(max(1, c.scale)))
			continue
		}
		args = append(args, fmt.Sprintf("--builtin=%s@%d", s.name, s.weight))
	}
	return k.command("pgbench", k.withDatabase(append(args, k.reach(benchRole)...))...)
}

// logPrefix begins the names of the transaction logs.
func (k commands) logPrefix() string { return filepath.Join(k.folder(k.config.disk), "log", "pgbench") }

func (k commands) script(s script) string {
	return filepath.Join(k.folder(k.config.disk), "log", s.name+".sql")
}

package pgbench

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/load/postgres"
	"github.com/braggdev/bragg/internal/load/program"
)

// commands makes the commands of pgbench, for its plan and for its run.
type commands struct {
	postgres.Commands
	config *config
	major  int // version of pgbench
}

func (k commands) initialise() program.Command {
	args := append([]string{"--initialize", "--scale=" + strconv.Itoa(k.config.scale)}, k.Reach()...)
	return k.Command("pgbench", k.withDatabase(args)...)
}

// remove drops the tables that initialise makes.
func (k commands) remove() program.Command {
	return k.Command("pgbench", k.withDatabase(append([]string{"--initialize", "--init-steps=d"}, k.Reach()...))...)
}

func (k commands) withDatabase(args []string) []string {
	if k.config.server.Elsewhere() {
		return args
	}
	return append(args, postgres.Role)
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
	return k.Command("pgbench", k.withDatabase(append(args, k.Reach()...))...)
}

// logPrefix begins the names of the transaction logs.
func (k commands) logPrefix() string { return filepath.Join(k.ClientFolder(), "log", "pgbench") }

func (k commands) script(s script) string {
	return filepath.Join(k.ClientFolder(), "log", s.name+".sql")
}

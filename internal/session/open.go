package session

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
	targetbuiltin "github.com/braggdev/bragg/internal/target/builtin"
	"github.com/braggdev/bragg/internal/trust"
)

// identityLife is how long the certificates of agents remain valid beyond the estimated duration of a run.
const identityLife = time.Hour

// opening has the inputs for opening a target for one run.
type opening struct {
	config     target.Config
	runs, id   string // of the run, whose folder has the files of the provider that must survive this program
	program    Program
	identities *trust.Authority // may be nil: no agent is made
}

func openTarget(ctx context.Context, o opening) (target.Target, error) {
	machines := path.Join(o.id, machinesFolder)
	if err := durable.CheckFolder(o.runs, machines); err != nil {
		return nil, err
	}
	return targetbuiltin.OpenConfig(ctx, o.config, target.OpenOptions{
		Dir: filepath.Join(o.runs, machines), AgentCommand: o.program.AgentCommand, ServeAgent: serveInMemory,
		Authority: o.identities, AgentProgram: o.program.Agent, Leases: o.program.Leases,
	})
}

// Agent returns the path of the agent's program for a platform: "bragg-agent" is the one for this program's own, and
// "bragg-agent-linux-arm64" another.
func (p Program) Agent(platform string) (string, error) {
	dir := p.AgentDir
	if dir == "" {
		dir = filepath.Dir(p.Executable)
	}
	names := []string{"bragg-agent-" + strings.ReplaceAll(platform, "/", "-")}
	if platform == runtime.GOOS+"/"+runtime.GOARCH {
		names = append(names, "bragg-agent")
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", &diag.Error{
		Code: "no-agent", Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("find the agent for %s: no %s in %q", platform, strings.Join(names, " or "), dir),
		Hint:    "agents are installed beside bragg, or in $BRAGG_AGENT_DIR; in a checkout: make build, or make bin/bragg-agent-linux-arm64 for one platform",
	}
}

// serveInMemory is the agent of a VM that exists in memory only. It runs a simulation of every generator, because a
// simulated target must not touch this machine's devices.
func serveInMemory(ctx context.Context, conn net.Conn, vm target.VM) error {
	generators := map[string]load.Generator{}
	for _, k := range Catalog().Generators {
		generators[k.Name] = cmp.Or(k.Simulation, k.Generator)
	}
	return agent.Serve(ctx, conn, agent.Options{Generators: generators, VM: vm.Name})
}

package contract_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/target/kube"
	"github.com/braggdev/bragg/internal/target/kube/kubetest"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/trust"
)

// runAgent is the agent in simulated pods, if this process is one.
func runAgent() {
	if len(os.Args) > 1 && filepath.IsAbs(os.Args[1]) && strings.HasSuffix(os.Args[1], object.ConfigFile) {
		os.Exit(agent.Command(context.Background(), os.Args[1:], agent.Program{Generators: map[string]load.Generator{}, Version: "test", Stderr: os.Stderr}))
	}
}

// loopbacks counts the addresses of agents: each has one of its own.
var loopbacks atomic.Uint32

// run makes the nodes of a simulated cluster start real agents. furnish writes the files of an agent to its folder, and returns the path of its
// configuration.
func run(t *testing.T, s *kubetest.Server, furnish func(secret map[string][]byte, home, address string) (config string, err error)) {
	t.Helper()
	dir := t.TempDir()
	s.Run = func(_, secret kubetest.Object) (string, func(), error) {
		n := loopbacks.Add(1)
		address := fmt.Sprintf("127.77.%d.%d", n>>8, n&255+1)
		home, err := os.MkdirTemp(dir, "vm")
		if err != nil {
			return "", nil, err
		}
		data, _ := secret["data"].(kubetest.Object)
		files := map[string][]byte{}
		for name, value := range data {
			if files[name], err = base64.StdEncoding.DecodeString(value.(string)); err != nil {
				return "", nil, err
			}
		}
		config, err := furnish(files, home, address)
		if err != nil {
			return "", nil, err
		}
		process := exec.Command(os.Args[0], config)
		if err := process.Start(); err != nil {
			return "", nil, err
		}
		return address, func() {
			_ = process.Process.Kill()
			_ = process.Wait()
		}, nil
	}
}

// runAgents makes pods run agents, with the files of their Secrets.
func runAgents(t *testing.T, s *kubetest.Server) {
	t.Helper()
	run(t, s, func(secret map[string][]byte, home, address string) (string, error) {
		for name, text := range secret {
			if name == object.ConfigFile {
				text = relocate(text, home, address)
			}
			if err := os.WriteFile(filepath.Join(home, name), text, 0o600); err != nil {
				return "", err
			}
		}
		return filepath.Join(home, object.ConfigFile), nil
	})
}

// relocate moves an agent out of a container.
func relocate(text []byte, home, address string) []byte {
	var c agent.Config
	if err := json.Unmarshal(text, &c); err != nil {
		panic(err)
	}
	c.Listen, c.MetricsListen = strings.Replace(c.Listen, ":", address+":", 1), ""
	for i := range c.Files {
		c.Files[i].Path = filepath.Join(home, filepath.Base(filepath.Dir(c.Files[i].Path)))
	}
	moved, _ := json.Marshal(c)
	return []byte(strings.ReplaceAll(string(moved), object.IdentityDir, home))
}

func greet(ctx context.Context, conn net.Conn) (string, error) {
	hello, err := client.New(conn, client.Options{}).Hello(ctx)
	return hello.Boot, err
}

// simulated is a target file for a simulated cluster.
func simulated(t *testing.T, s *kubetest.Server) target.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(s.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	writePEM(t, ca, s.Certificate().Raw)
	return target.Config{
		Provider: kube.ProviderName, Name: "simulated", Endpoint: s.URL, CAFile: ca, Pool: "fast",
		Credentials: map[string]target.Credential{"platform": {Secret: target.Secret{File: path}}},
		Options:     map[string]string{"namespace": kubetest.Namespace, "image": "bragg-agent:test", "agents": "direct"},
	}
}

func authority(t testing.TB) *trust.Authority {
	t.Helper()
	a, err := trust.New("run-1", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// openOnly opens the target and reads its inventory.
func openOnly(t *testing.T, c target.Config) (target.Inventory, error) {
	t.Helper()
	opened, err := kube.Provider().Open(t.Context(), c, target.OpenOptions{Dir: t.TempDir()})
	if err != nil {
		return target.Inventory{}, err
	}
	defer opened.Close()
	return opened.Inventory(t.Context())
}

func openAs(t *testing.T, c target.Config, a *trust.Authority) target.Target {
	t.Helper()
	opened, err := kube.Provider().Open(t.Context(), c, target.OpenOptions{Dir: t.TempDir(), Authority: a})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

// uncounted are metrics that no kubelet has: a cluster does not know the clock rate of its processors.
var uncounted = []string{"CpuUsage.Avg.Megahertz", string(target.VMCPUSteal), string(target.VMReadTime), string(target.VMWriteTime)}

// The contract on a simulated cluster, with real agents.
func TestContractSimulated(t *testing.T) {
	t.Parallel()
	simulatedContract(t, func(t *testing.T, s *kubetest.Server) target.Config {
		if strings.HasSuffix(t.Name(), "/dial") {
			runAgents(t, s)
		}
		c := simulated(t, s)
		if strings.HasSuffix(t.Name(), "node_power") {
			c.Credentials["bmc"] = targettest.Credentials(t)[targettest.CredentialName]
			c.Allow.NodePower = true
			for i, name := range []string{"node-1", "node-2"} {
				b := targettest.NewBMC(t, fmt.Sprintf("00000000-0000-4000-8000-%012d", i+1), func(on bool) { s.SetNode(name, on) })
				c.Nodes = append(c.Nodes, target.NodeConfig{ID: name, BMC: b.Config})
			}
		}
		s.Budget = 3
		return c
	})
}

// simulatedContract runs the contract, each test on a simulated cluster of its own, for which furnish makes a target file.
func simulatedContract(t *testing.T, furnish func(t *testing.T, s *kubetest.Server) target.Config) {
	configs := map[target.Target]target.Config{}
	servers := map[target.Target]*kubetest.Server{}
	identities := authority(t)
	targettest.Run(t, targettest.Harness{
		Open: func(t *testing.T) target.Target {
			s := kubetest.New(t, "node-1", "node-2")
			c := furnish(t, s)
			c.Allow.Maintenance = strings.HasSuffix(t.Name(), "/maintenance")
			opened := openAs(t, c, identities)
			if l, ok := opened.(target.NodeLimiter); ok {
				l.LimitNodesOff(1)
				opened.(interface{ TuneBMCs(o bmc.Options) }).TuneBMCs(bmc.Options{Poll: 20 * time.Millisecond, Settle: 100 * time.Millisecond})
			}
			configs[opened], servers[opened] = c, s
			return opened
		},
		Reopen:    func(t *testing.T, before target.Target) target.Target { return openAs(t, configs[before], identities) },
		Greet:     greet,
		Uncounted: uncounted,
		Leftovers: func(_ *testing.T, before target.Target) []string { return leftIn(servers[before]) },
	})
}

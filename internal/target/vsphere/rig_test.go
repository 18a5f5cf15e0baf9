package vsphere

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/trust"
)

// asAgent makes the test's program an agent.
const asAgent = "__agent"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == asAgent {
		os.Exit(agent.Command(context.Background(), os.Args[2:], agent.Program{Version: "test", Stderr: os.Stderr}))
	}
	code := m.Run()
	shared.close()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// shared is the vCenter of all tests that leave it as it was.
var shared sharedServer

type sharedServer struct {
	once   sync.Once
	server *vcsim.Server
	dir    string
	err    error
}

func (s *sharedServer) get(t *testing.T) *vcsim.Server {
	t.Helper()
	s.once.Do(func() {
		if s.dir, s.err = os.MkdirTemp("", "bragg-vcsim-"); s.err == nil {
			s.server, s.err = start(s.dir)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

func start(dir string) (*vcsim.Server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return vcsim.Start(vcsim.Options{Agent: []string{self, asAgent}, Dir: dir})
}

func (s *sharedServer) close() {
	if s.server != nil {
		s.server.Close()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// rig is a vCenter with a target on it.
type rig struct {
	*vcsim.Server
	config    target.Config
	authority *trust.Authority
}

// newRig uses the shared vCenter.
func newRig(t *testing.T) *rig {
	t.Helper()
	return rigOf(t, shared.get(t))
}

func rigOf(t *testing.T, s *vcsim.Server) *rig {
	t.Helper()
	authority, err := trust.New("run", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.TargetFile(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	c, list := target.ParseConfig("target.yml", []byte(text), []target.Provider{Provider()})
	if len(list) > 0 {
		t.Fatal(list)
	}
	return &rig{Server: s, config: c, authority: authority}
}

// open opens the target as a program does that can reach agents.
func (r *rig) open(t *testing.T) target.Target {
	t.Helper()
	v, err := open(t.Context(), r.config, target.OpenOptions{Authority: r.authority})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// withBMCs gives all hosts a BMC whose power is that of the host.
func (r *rig) withBMCs(t *testing.T) {
	t.Helper()
	r.config.Allow.NodePower, r.config.Allow.Maintenance = true, true
	for name, credential := range targettest.Credentials(t) {
		r.config.Credentials[name] = credential
	}
	r.config.Allow.Overrides = []string{target.OverrideForeignVMs}
	for id, h := range r.Hosts() {
		b := targettest.NewBMC(t, h.Hardware.SystemInfo.Uuid, func(on bool) { r.SetHostPower(id, on) })
		r.config.Nodes = append(r.config.Nodes, target.NodeConfig{ID: h.Name, BMC: b.Config})
	}
	slices.SortFunc(r.config.Nodes, func(a, b target.NodeConfig) int { return strings.Compare(a.ID, b.ID) })
}

func greet(ctx context.Context, conn net.Conn) (string, error) {
	hello, err := client.New(conn, client.Options{}).Hello(ctx)
	return hello.Boot, err
}

// leftovers lists the VMs of Bragg in the vCenter, and settings of VMs in the cluster.
func (r *rig) leftovers(t *testing.T) []string {
	t.Helper()
	var left []string
	for name := range r.VMs() {
		if name != vcsim.Foreign && name != vcsim.Template {
			left = append(left, name)
		}
	}
	return left
}

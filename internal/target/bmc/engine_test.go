package bmc

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/step"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
	"github.com/braggdev/bragg/internal/verb"
)

// cluster has simulated VMs and nodes whose power is that of real BMCs.
type cluster struct {
	*fake.Target
	nodes    *Nodes
	machines map[string]Identity
	foreign  []string
}

func (c *cluster) LimitNodesOff(n int) { c.nodes.LimitNodesOff(n) }
func (c *cluster) PowerOffNode(ctx context.Context, id string) error {
	return c.nodes.PowerOffNode(ctx, id)
}
func (c *cluster) PowerOnNode(ctx context.Context, id string) error {
	return c.nodes.PowerOnNode(ctx, id)
}
func (c *cluster) ShutdownNode(ctx context.Context, id string) error {
	return c.nodes.ShutdownNode(ctx, id)
}
func (c *cluster) NodePowerState(ctx context.Context, id string) (target.PowerState, error) {
	return c.nodes.NodePowerState(ctx, id)
}

func (c *cluster) Survey(_ context.Context, id string) (Survey, error) {
	return Survey{Machine: c.machines[id], VMsListed: true, ForeignVMs: c.foreign, Controller: No, Redundant: Yes}, nil
}

// newCluster has one node with ipmitool and ipmi_sim, and one with Redfish.
func newCluster(t *testing.T) (*cluster, *simulator, *service) {
	t.Helper()
	sim, redfish := newSimulator(t), newService(t)
	sim.up()
	c := sim.config(sim.port)
	c.Provider, c.NodeCount = "fake", 2
	c.Nodes[0].ID = "node-1"
	other := redfish.config().Nodes[0]
	other.ID = "node-2"
	redfish.uuid = uuidOther
	c.Nodes = append(c.Nodes, other)
	cl := &cluster{machines: map[string]Identity{"node-1": {UUID: uuidDMI}, "node-2": {UUID: strings.ToUpper(uuidOther)}}}
	serve := func(ctx context.Context, _ net.Conn, _ target.VM) error { <-ctx.Done(); return nil }
	var err error
	if cl.Target, err = fake.Open(t.Context(), target.Config{Provider: "fake", NodeCount: 2, Allow: c.Allow}, target.OpenOptions{ServeAgent: serve}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cl.Close() })
	if cl.nodes, err = OpenNodes(t.Context(), c, cl); err != nil {
		t.Fatal(err)
	}
	for _, s := range cl.nodes.switches {
		s.o = patient.defaults()
	}
	return cl, sim, redfish
}

// runOn runs the steps of a run phase on the cluster, and returns the outcome with the messages of events.
func runOn(t *testing.T, c *cluster, steps string) (executor.Outcome, []string) {
	t.Helper()
	text := "name: power\ndisplay_name: Power\nsummary: s\ndescription: d\ntags: [test]\nestimated_runtime: 60\nvms: []\nworkloads: []\nresults: []\n" +
		"setup:\n  - cluster.CleanUp: {}\nrun:\n" + steps
	sc, err := scenario.Load(t.Context(), scenario.Source{FS: fstest.MapFS{"test.yml": {Data: []byte(text)}}, Name: "power", Trusted: true}, scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	inventory, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := planner.Compile(sc, inventory, target.Capabilities(c), verb.Catalog{Steps: step.All()}, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runs := t.TempDir()
	tag, err := control.NewTag(runs, "r1", nil)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := control.CreateJournal(runs, control.Header{Run: "r1", Tag: tag, Scenario: "power"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	var messages []string
	engine, err := executor.New(plan, executor.Config{Target: c, Journal: journal, Zero: time.Now(), Dir: runs,
		Runner:    func(context.Context, target.VM) (load.Runner, error) { return nil, fmt.Errorf("no load here") },
		Intervals: load.SinkFunc(func(interval.Interval) {}),
		Events:    func(e interval.Event) { messages = append(messages, e.Message) }})
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := engine.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return outcome, messages
}

// The steps of scenarios switch real BMCs, and nodes that a run switched off are on after it, however it ended.
func TestStepsSwitchBMCs(t *testing.T) {
	if testing.Short() {
		t.Skip("starts ipmitool often")
	}
	for name, c := range map[string]struct {
		steps  string
		change func(*cluster, *simulator, *service)
		ended  string
		says   string
		resets []string // of the node with Redfish
	}{
		"one after the other": {steps: "  - nodes.PowerOff: {nodes: 0}\n  - nodes.PowerOn: {nodes: 0}\n  - nodes.Shutdown: {nodes: 1}\n  - nodes.PowerOn: {nodes: 1}\n",
			ended: executor.Completed, resets: []string{"GracefulShutdown", "On"}},
		"both at once":  {steps: "  - nodes.PowerOff: {nodes: all}\n", ended: executor.Completed, resets: []string{"ForceOff", "On"}},
		"left off":      {steps: "  - nodes.PowerOff: {nodes: 1, wait_secs: 0}\n", ended: executor.Completed, resets: []string{"ForceOff", "On"}},
		"wrong machine": {steps: "  - nodes.PowerOff: {nodes: 1}\n", change: func(c *cluster, _ *simulator, s *service) { s.uuid = uuidDMI }, ended: executor.Failed, says: "another machine"},
		"foreign VM":    {steps: "  - nodes.PowerOff: {nodes: 1}\n", change: func(c *cluster, _ *simulator, s *service) { c.foreign = []string{"payroll"} }, ended: executor.Failed, says: "payroll"},
		"off by another party": {steps: "  - nodes.PowerOff: {nodes: 1}\n", change: func(_ *cluster, sim *simulator, _ *service) { sim.write("power", "0\n") },
			ended: executor.Failed, says: "2 off at once"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cl, sim, redfish := newCluster(t)
			if c.change != nil {
				c.change(cl, sim, redfish)
			}
			outcome, messages := runOn(t, cl, c.steps)
			if outcome.Ended != c.ended || !strings.Contains(outcome.Reason, c.says) || len(outcome.Problems)+len(outcome.Left) > 0 {
				t.Errorf("outcome %+v, want %s that says %q\n%s", outcome, c.ended, c.says, strings.Join(messages, "\n"))
			}
			if !redfish.on || !slices.Equal(redfish.resets, c.resets) || len(redfish.strays) > 0 {
				t.Errorf("node-2 is on: %v; resets %v, want %v; strays %v", redfish.on, redfish.resets, c.resets, redfish.strays)
			}
			if !sim.on() && c.says != "2 off at once" {
				t.Error("node-1 is off")
			}
		})
	}
}

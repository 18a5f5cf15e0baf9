package bmc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// lab is a target of simulated machines, whose surveys find nothing wrong.
type lab struct {
	*Nodes
	machines []*machine
	surveys  map[string]Survey
}

func (l *lab) Survey(_ context.Context, nodeID string) (Survey, error) {
	s, ok := l.surveys[nodeID]
	if !ok {
		return Survey{}, errors.New("the node does not answer")
	}
	return s, nil
}

// newLab makes n nodes, "1", "2", …; it runs in a bubble of synctest.
func newLab(t *testing.T, n int, overrides ...string) *lab {
	t.Helper()
	l := &lab{surveys: map[string]Survey{}}
	c := target.Config{
		Allow:       target.Allow{NodePower: true, Overrides: overrides},
		Credentials: map[string]target.Credential{"bmc": {User: testUser, Secret: secretFile(t, testPassword)}},
	}
	for i := range n {
		id := fmt.Sprint(i + 1)
		c.Nodes = append(c.Nodes, target.NodeConfig{ID: id, Name: "node " + id, BMC: &target.BMC{
			Protocol: target.Redfish, Address: "192.0.2." + id, Credential: "bmc"}})
		who := Identity{UUID: fmt.Sprintf("4c4c4544-0058-4b10-8030-b7c04f51%04d", i)}
		l.machines = append(l.machines, &machine{on: true, identity: who})
		l.surveys[id] = Survey{Machine: who, VMsListed: true, Controller: No, Redundant: Yes}
	}
	nodes, err := OpenNodes(t.Context(), c, l)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range l.machines {
		nodes.switches[fmt.Sprint(i+1)] = NewSwitch(fmt.Sprint("node ", i+1), m, Options{})
	}
	l.Nodes = nodes
	time.Sleep(time.Hour) // what was before is over
	return l
}

func (l *lab) commands() int {
	sum := 0
	for _, m := range l.machines {
		sum += m.commands
	}
	return sum
}

func refused(err error) bool { return diag.ExitCode(err) == diag.ExitRefused }

func TestNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		if err := l.PowerOffNode(t.Context(), "1"); !refused(err) || l.commands() != 0 {
			t.Errorf("cut before the engine said how many: %v", err)
		}
		l.LimitNodesOff(1)
		for range 2 { // the second time it is off
			if err := l.PowerOffNode(t.Context(), "1"); err != nil {
				t.Fatal(err)
			}
		}
		if state, err := l.NodePowerState(t.Context(), "1"); err != nil || state != target.PowerOff {
			t.Errorf("got %s, %v", state, err)
		}
		for _, act := range []func(context.Context, string) error{l.PowerOffNode, l.ShutdownNode} {
			if err := act(t.Context(), "2"); !refused(err) || !strings.Contains(err.Error(), "node 1") || !l.machines[1].on {
				t.Errorf("two are off and one is declared: %v", err)
			}
		}
		if err := l.PowerOnNode(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		if err := l.ShutdownNode(t.Context(), "2"); err != nil {
			t.Error(err)
		}
		if err := l.PowerOffNode(t.Context(), "no such node"); codeOf(err) != CodeLacks {
			t.Error(err)
		}
		if f := l.Facts(); len(f) > 0 {
			t.Errorf("facts %v", f)
		}
	})
}

// However many are cut at the same time, never more are off than were declared.
func TestCountAtTheSameTime(t *testing.T) {
	for _, most := range []int{0, 1, 3, 8} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, 8)
			l.LimitNodesOff(most)
			var wait sync.WaitGroup
			errs := make([]error, 8)
			for i := range errs {
				wait.Go(func() { errs[i] = l.PowerOffNode(t.Context(), fmt.Sprint(i+1)) })
			}
			wait.Wait()
			done := 0
			for i, err := range errs {
				if err == nil {
					done++
				} else if !refused(err) {
					t.Error(err)
				}
				if l.machines[i].on != (err != nil) {
					t.Errorf("node %d: %v, and it is on: %v", i+1, err, l.machines[i].on)
				}
			}
			if done != most {
				t.Errorf("%d are off, want %d", done, most)
			}
		})
	}
}

// A node whose cut came to no clear end counts as off, and so does one that cannot be read.
func TestDoubtfulNodesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		l.LimitNodesOff(1)
		l.machines[0].deaf = true
		if err := l.PowerOffNode(t.Context(), "1"); codeOf(err) != CodeNoEffect {
			t.Fatal(err)
		}
		if err := l.PowerOffNode(t.Context(), "2"); !refused(err) {
			t.Errorf("got %v", err)
		}
		l.machines[0].deaf = false
		if err := l.PowerOnNode(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		l.machines[2].hang = true
		if err := l.PowerOffNode(t.Context(), "2"); !refused(err) || !strings.Contains(err.Error(), "node 3") {
			t.Errorf("got %v", err)
		}
		l.machines[2].hang = false
		time.Sleep(time.Minute)
		if err := l.PowerOffNode(t.Context(), "2"); err != nil {
			t.Error(err)
		}
	})
}

// Each check is made each time, before anything is sent, for cuts and for orderly shutdowns.
func TestNodesAreCheckedFirst(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*lab)
		exit   int
		says   string
	}{
		"not allowed":     {func(l *lab) { l.config.Allow.NodePower = false }, diag.ExitRefused, "does not allow"},
		"another BMC":     {func(l *lab) { l.machines[0].identity.UUID = uuidOther }, diag.ExitRefused, "another machine"},
		"file disagrees":  {func(l *lab) { l.config.Nodes[0].UUID = uuidOther }, diag.ExitRefused, "target file says"},
		"two alike":       {func(l *lab) { l.config.Nodes[1].UUID = l.machines[0].identity.UUID }, diag.ExitRefused, `matches node "node 2"`},
		"foreign VM":      {func(l *lab) { s := l.surveys["1"]; s.ForeignVMs = []string{"payroll"}; l.surveys["1"] = s }, diag.ExitRefused, "payroll"},
		"not surveyed":    {func(l *lab) { delete(l.surveys, "1") }, diag.ExitInternal, "does not answer"},
		"nothing known":   {func(l *lab) { l.surveys["1"] = Survey{} }, diag.ExitRefused, "not known"},
		"BMC is silent":   {func(l *lab) { l.machines[0].hang = true }, diag.ExitUnavailable, "no answer"},
		"BMC has garbage": {func(l *lab) { l.machines[0].identity = Identity{UUID: "x"} }, diag.ExitRefused, "nothing proves"},
	} {
		for _, soft := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 2)
				l.LimitNodesOff(2)
				c.change(l)
				act := l.PowerOffNode
				if soft {
					act = l.ShutdownNode
				}
				err := act(t.Context(), "1")
				if diag.ExitCode(err) != c.exit || !strings.Contains(err.Error(), c.says) || l.commands() > 0 {
					t.Errorf("%s: got %v with exit code %d after %d commands", name, err, diag.ExitCode(err), l.commands())
				}
			})
		}
	}
}

// Overrides of the target file allow a cut, and are in the report's facts from the start.
func TestOverridesAreFacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 1, target.OverrideForeignVMs, target.OverrideRedundancy)
		l.LimitNodesOff(1)
		if f := l.Facts(); len(f) != 2 {
			t.Errorf("facts %v", f)
		}
		s := l.surveys["1"]
		s.ForeignVMs = []string{"payroll"}
		l.surveys["1"] = s
		if err := l.PowerOffNode(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		if f := l.Facts(); len(f) != 3 || !strings.Contains(f[2].Value, "payroll") {
			t.Errorf("facts %v", f)
		}
	})
}

// A node that is off already stays so, and needs to say nothing of itself; one that comes back is an error.
func TestAlreadyOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.LimitNodesOff(1)
		l.machines[0].on = false
		l.surveys = map[string]Survey{"2": l.surveys["2"]}
		for _, act := range []func(context.Context, string) error{l.PowerOffNode, l.ShutdownNode} {
			if err := act(t.Context(), "1"); err != nil || l.commands() > 0 {
				t.Errorf("got %v after %d commands", err, l.commands())
			}
		}
		if err := l.PowerOffNode(t.Context(), "2"); !refused(err) {
			t.Errorf("two are off: %v", err)
		}
		time.AfterFunc(2*time.Second, func() {
			l.machines[0].mu.Lock()
			defer l.machines[0].mu.Unlock()
			l.machines[0].on = true
		})
		if err := l.PowerOffNode(t.Context(), "1"); codeOf(err) != CodeUnsteady || l.commands() > 0 {
			t.Errorf("got %v after %d commands", err, l.commands())
		}
	})
}

// A node that is not allowed to be switched is not powered on either.
func TestPowerOnNeedsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 1)
		l.config.Allow.NodePower = false
		if err := l.PowerOnNode(t.Context(), "1"); !refused(err) || l.commands() > 0 {
			t.Errorf("got %v", err)
		}
	})
}

// Whichever of three off/on cycles a faulty BMC disturbs, the node ends up on, as teardown requires.
func TestNodesAreRestored(t *testing.T) {
	faults := map[string]func(*machine){
		"none": func(*machine) {}, "slow": func(m *machine) { m.answer = 10 * time.Second }, "late": func(m *machine) { m.delay = 30 * time.Second },
		"deaf": func(m *machine) { m.deaf = true }, "hang": func(m *machine) { m.hang = true }, "garbage": func(m *machine) { m.stateErr = errGarbage },
		"failing": func(m *machine) { m.failing = 20 }, "refuses": func(m *machine) { m.switchErr = fault(CodeRefused, "1", "cut", nil) },
	}
	for name, spoil := range faults {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, 1)
			l.LimitNodesOff(1)
			m := l.machines[0]
			heal := func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.answer, m.delay, m.deaf, m.hang, m.stateErr, m.failing, m.switchErr = 0, 0, false, false, nil, 0, nil
			}
			for _, after := range []time.Duration{0, 10 * time.Second, 90 * time.Second} {
				m.mu.Lock()
				spoil(m)
				m.mu.Unlock()
				timer := time.AfterFunc(after, heal)
				_ = l.PowerOffNode(t.Context(), "1")
				timer.Stop()
				heal()
				if err := l.PowerOnNode(t.Context(), "1"); err != nil {
					t.Errorf("%s, healed after %v: %v", name, after, err)
				}
				time.Sleep(time.Hour)
				if !m.on {
					t.Errorf("%s, healed after %v: still off", name, after)
				}
			}
		})
	}
}

package session

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/target"
)

func TestIndividuals(t *testing.T) {
	hello := func(boot, machine, address string) agent.Hello {
		return agent.Hello{Boot: boot, MachineID: machine, Addresses: []string{address}}
	}
	const one, two = "0123456789abcdef0123456789abcdef", "1123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		systems bool
		second  agent.Hello
		want    string
	}{
		"different":         {true, hello("b", two, "10.0.0.2"), ""},
		"same machine-id":   {true, hello("b", one, "10.0.0.2"), "machine-id: " + one},
		"same address":      {true, hello("b", two, "10.0.0.1"), "address: 10.0.0.1"},
		"same agent":        {true, hello("a", two, "10.0.0.2"), "agent: a"},
		"of one host":       {false, hello("b", one, "10.0.0.1"), ""},
		"one agent on host": {false, hello("a", one, "10.0.0.1"), "agent: a"},
	} {
		i := newIndividuals(c.systems)
		if err := i.meet(target.VM{Name: "first"}, hello("a", one, "10.0.0.1")); err != nil {
			t.Errorf("%s: the first VM: %v", name, err)
		}
		err := i.meet(target.VM{Name: "second"}, c.second)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "first and second") {
			t.Errorf("%s: %v does not name both", name, err)
		}
		i.forget("first")
		if err := i.meet(target.VM{Name: "second"}, c.second); err != nil {
			t.Errorf("%s: after the first is gone: %v", name, err)
		}
	}
}

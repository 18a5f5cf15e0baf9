package bmc

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

const restoredUUID = "4c4c4544-0058-4b10-8030-b7c04f510001"

func restorable(m *machine) (*Switch, Dark) {
	return NewSwitch("left", m, Options{}), Dark{Node: target.NodeConfig{ID: "left", UUID: restoredUUID, BMC: &target.BMC{Address: "192.0.2.1"}}}
}

// Whatever the dead run had sent, and whatever its BMC does at first, the node is on an hour later.
func TestRestore(t *testing.T) {
	tests := map[string]struct {
		on, soft bool
		spoil    func(*machine)
	}{
		"off":                     {spoil: func(*machine) {}},
		"on":                      {on: true, spoil: func(*machine) {}},
		"cut that is carried out": {on: true, spoil: func(m *machine) { m.later(30 * time.Second) }},
		"system that shuts down":  {on: true, soft: true, spoil: func(m *machine) { m.later(4 * time.Minute) }},
		"system that is down":     {soft: true, spoil: func(*machine) {}},
		"no identity":             {spoil: func(m *machine) { m.identity = Identity{} }},
		"slow":                    {spoil: func(m *machine) { m.answer = 10 * time.Second }},
		"failing":                 {spoil: func(m *machine) { m.failing = 20 }},
		"hangs for a while":       {spoil: func(m *machine) { m.hang = true; m.heal(3 * time.Minute) }},
		"refuses for a while": {spoil: func(m *machine) {
			m.switchErr = fault(CodeRefused, "left", "power on", errors.New("busy"))
			m.heal(time.Minute)
		}},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &machine{on: c.on, identity: Identity{UUID: restoredUUID}}
				c.spoil(m)
				s, dark := restorable(m)
				dark.Soft = c.soft
				began := time.Now()
				if err := s.restore(t.Context(), dark); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > restoreMax {
					t.Errorf("it took %v", took)
				}
				time.Sleep(time.Hour)
				if !m.on {
					t.Error("the node is off")
				}
			})
		})
	}
}

// A BMC of another machine is not switched.
func TestRestoreOfAnotherMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{identity: Identity{UUID: "4c4c4544-0058-4b10-8030-b7c04f519999"}}
		s, dark := restorable(m)
		if err := s.restore(t.Context(), dark); !refused(err) || codeOf(err) != CodeIdentity || m.commands > 0 {
			t.Errorf("got %v, and %d commands", err, m.commands)
		}
	})
}

// later makes the machine lose its power after a while.
func (m *machine) later(after time.Duration) {
	time.AfterFunc(after, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.on = false
	})
}

// heal ends after a while what is wrong with the BMC.
func (m *machine) heal(after time.Duration) {
	time.AfterFunc(after, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.hang, m.switchErr = false, nil
	})
}

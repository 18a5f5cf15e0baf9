package bmc

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// fine is a cut without objections.
func fine() PowerCut {
	return PowerCut{
		Node: "left", Allowed: true, BMC: Identity{UUID: uuidSwapped}, Machine: Identity{UUID: uuidDMI}, VMsListed: true,
		Controller: No, NodesOffMax: 1, Redundant: Yes, Others: map[string]Identity{"right": {UUID: uuidOther}},
	}
}

func TestCheckPowerCut(t *testing.T) {
	if v := CheckPowerCut(fine(), nil); v.Err() != nil || len(v.Facts()) > 0 {
		t.Fatalf("a cut without objections: %v, %v", v.Err(), v.Facts())
	}
	for name, c := range map[string]struct {
		change   func(*PowerCut)
		says     string
		override string // by which it can be overridden; "": by none
	}{
		"not allowed":          {func(c *PowerCut) { c.Allowed = false }, "does not allow", ""},
		"another machine":      {func(c *PowerCut) { c.Machine.UUID = uuidOther; c.Others = nil }, "belongs to another machine", ""},
		"not what was written": {func(c *PowerCut) { c.Declared.UUID = uuidOther; c.Others = nil }, "the target file says", ""},
		"BMC without identity": {func(c *PowerCut) { c.BMC = Identity{} }, "nothing proves", target.OverrideIdentity},
		"node not known":       {func(c *PowerCut) { c.Machine = Identity{} }, "nothing proves", target.OverrideIdentity},
		"made up":              {func(c *PowerCut) { c.BMC.UUID, c.Machine.UUID = strings.Repeat("0", 32), strings.Repeat("0", 32) }, "nothing proves", target.OverrideIdentity},
		"fits another node":    {func(c *PowerCut) { c.Others["right"] = Identity{UUID: uuidDMI} }, `matches node "right"`, ""},
		"another node too":     {func(c *PowerCut) { c.SameAs = []string{"right"} }, "the same machine as node \"right\"", target.OverrideIdentity},
		"foreign VM":           {func(c *PowerCut) { c.ForeignVMs = []string{"payroll"} }, "payroll", target.OverrideForeignVMs},
		"many foreign VMs":     {func(c *PowerCut) { c.ForeignVMs = strings.Split("a b c d e f g", " ") }, "7 foreign VMs", target.OverrideForeignVMs},
		"VMs not known":        {func(c *PowerCut) { c.VMsListed = false }, "not known which VMs", target.OverrideForeignVMs},
		"controller on it":     {func(c *PowerCut) { c.Controller = Yes }, "this program runs on it", target.OverrideController},
		"controller not known": {func(c *PowerCut) { c.Controller = Unknown }, "not known whether this program", target.OverrideController},
		"one too many":         {func(c *PowerCut) { c.NodesOff = []string{"right"} }, "2 off at once and the scenario has at most 1", ""},
		"none declared":        {func(c *PowerCut) { c.NodesOffMax = 0 }, "at most 0", ""},
		"not recovered":        {func(c *PowerCut) { c.Redundant, c.Health = No, "3 objects degraded" }, "3 objects degraded", target.OverrideRedundancy},
		"health not known":     {func(c *PowerCut) { c.Redundant = Unknown }, "not known whether the target has", target.OverrideRedundancy},
	} {
		t.Run(name, func(t *testing.T) {
			cut := fine()
			c.change(&cut)
			err := CheckPowerCut(cut, nil).Err()
			var userErr *diag.Error
			if !errors.As(err, &userErr) || userErr.Exit != diag.ExitRefused || !strings.Contains(userErr.Message, c.says) || userErr.Hint == "" ||
				!strings.Contains(userErr.Message, `"left"`) {
				t.Fatalf("got %+v, want a refusal that says %q", userErr, c.says)
			}
			others := slices.DeleteFunc(target.Overrides(), func(o string) bool { return o == c.override })
			if CheckPowerCut(cut, others).Err() == nil {
				t.Errorf("overridden by one of %v", others)
			}
			if c.override == "" {
				return
			}
			v := CheckPowerCut(cut, []string{c.override})
			if f := v.Facts(); v.Err() != nil || len(f) != 1 || f[0].Name != "override "+c.override || !strings.Contains(f[0].Value, c.says) {
				t.Errorf("overridden: %v, facts %v", v.Err(), f)
			}
			if !strings.Contains(userErr.Hint, c.override) {
				t.Errorf("the hint does not name the override: %s", userErr.Hint)
			}
		})
	}
}

// Without any known facts a cut is refused, and all objections are reported at once.
func TestZeroCutIsRefused(t *testing.T) {
	err := CheckPowerCut(PowerCut{Node: "left"}, nil).Err()
	for _, want := range []string{"does not allow", "nothing proves", "which VMs", "this program", "at most 0", "redundancy"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if err := CheckPowerCut(PowerCut{Node: "left"}, target.Overrides()).Err(); err == nil {
		t.Error("overrides allow what the target file does not")
	}
}

// The target file proves what the node itself cannot report.
func TestDeclaredIdentityProves(t *testing.T) {
	c := fine()
	c.Machine, c.Declared = Identity{}, Identity{Serials: []string{"7XK0Q13"}}
	c.BMC = Identity{Serials: []string{"7xk0q13"}}
	if err := CheckPowerCut(c, nil).Err(); err != nil {
		t.Error(err)
	}
}

package targets

import (
	"bytes"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
)

// What BMCs said is printed also where the platform itself could not be reached, and nothing in it reaches a terminal as
// a command.
func TestBMCsArePrinted(t *testing.T) {
	var out, errs bytes.Buffer
	p := &console.Process{Stdout: &out, Stderr: &errs}
	checked := checkedTarget{BMCs: []bmc.Reading{
		{Node: "left", Protocol: "ipmi", Address: "10.0.1.11", Power: target.PowerOn, Identity: bmc.Identity{UUID: "4c4c4544", Serials: []string{"\x1b[2J7X"}}, Matches: "UUID"},
		{Node: "right", Protocol: "redfish", Address: "10.0.1.12", Power: target.PowerUnknown},
	}}
	checked.Problems.Errorf(diag.Position{File: "cluster.yml", Line: 7, Column: 5}, bmc.CodeLogin, "user or password is wrong")
	if err := printChecked(p, checked); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"left", "on", "UUID 4c4c4544", "right", "unknown", "no identity"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "\x1b") || !strings.Contains(errs.String(), "cluster.yml:7:5") {
		t.Errorf("printed %q and %q", &out, &errs)
	}
}

// A BMC that is away leaves the file right; one of another machine does not.
func TestCheckedCode(t *testing.T) {
	for code, want := range map[string]int{
		bmc.CodeUnreachable: diag.ExitUnavailable, bmc.CodeLogin: diag.ExitUnavailable, bmc.CodeIdentity: diag.ExitData, bmc.CodeTwice: diag.ExitData,
	} {
		var list diag.List
		list.Errorf(diag.Position{File: "cluster.yml", Line: 7}, code, "x")
		if got := checkedCode(list); got != want {
			t.Errorf("%s: exit code %d, want %d", code, got, want)
		}
	}
}

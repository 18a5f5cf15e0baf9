package targets

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
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

// A check reads each source of the target file once. One that cannot be read is a warning: runs do without it.
func TestSourcesAreChecked(t *testing.T) {
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ceph_osd_op_r 5\nceph_osd_op_w 6 1000\n") }))
	defer exporter.Close()
	file := filepath.Join(t.TempDir(), "target.yml")
	text := fmt.Sprintf("provider: fake\nnodes: 2\nsources:\n  - {name: ceph, kind: ceph, url: %q}\n  - {name: gone, kind: prometheus, url: \"http://127.0.0.1:1/metrics\"}\n", exporter.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	p := &console.Process{Stdout: &out, Stderr: &errs, Getenv: os.Getenv}
	checked, err := checkTarget(t.Context(), p, file, t.TempDir())
	if err == nil {
		err = printChecked(p, checked)
	}
	if err != nil || checked.Problems.HasErrors() || len(checked.Sources) != 2 || checked.Sources[0].Check.Samples != 2 || !checked.Sources[0].Check.AgeKnown {
		t.Fatalf("got %+v, %v", checked, err)
	}
	if !regexp.MustCompile(`ceph +ceph +15 s +not mapped +not mapped +2 samples of 2 metrics, newest `).MatchString(out.String()) || !strings.Contains(errs.String(), `warning: source "gone": dial tcp 127.0.0.1:1: `) {
		t.Errorf("printed\n%s\n%s", &out, &errs)
	}
}

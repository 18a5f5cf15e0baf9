package fiojob_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/testreq"
)

// fioSays runs fio with one argument and returns its output. fio fails on --enghelp for an engine without options.
func fioSays(t *testing.T, argument string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("long")
	}
	cmd := exec.Command(testreq.Program(t, "fio"), argument)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "has no options") {
		t.Fatalf("fio %s: %v\n%s", argument, err, out)
	}
	return string(out)
}

var optionLine = regexp.MustCompile(`(?m)^\s*([a-zA-Z0-9_-]+)\s*: `)

// fioOptions lists what fio knows: its own options, and those of each I/O engine by the engine's name. Own options are under
// "".
func fioOptions(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	collect := func(owner, text string) {
		for _, m := range optionLine.FindAllStringSubmatch(text, -1) {
			all[owner] = append(all[owner], m[1])
		}
	}
	collect("", fioSays(t, "--cmdhelp"))
	_, engines, _ := strings.Cut(fioSays(t, "--enghelp"), ":")
	for _, engine := range strings.Fields(engines) {
		collect(engine, fioSays(t, "--enghelp="+engine))
	}
	return all
}

// TestEveryOptionOfFioIsClassified asks the real fio for all its options and those of its engines.
func TestEveryOptionOfFioIsClassified(t *testing.T) {
	seen := map[string]bool{}
	alias := regexp.MustCompile(`alias: (\S+)`)
	for engine, names := range fioOptions(t) {
		for _, name := range names {
			seen[name] = true
			if class, why := fiojob.ClassOf(name); class == syntax.Unknown || class != syntax.Native && why == "" {
				t.Errorf("option %s of fio's engine %q is %s because %q", name, engine, class, why)
			}
			if engine != "" {
				continue
			}
			for _, m := range alias.FindAllStringSubmatch(fioSays(t, "--cmdhelp="+name), -1) {
				if got := syntax.Canonical(m[1]); got != name {
					t.Errorf("fio has %s as another spelling of %s, the table of %s", m[1], name, got)
				}
			}
		}
	}
	if len(seen) < 250 {
		t.Errorf("fio listed only %d options", len(seen))
	}
	t.Logf("%d options", len(seen))
}

// TestEveryEngineOfFioIsKnown keeps the list of I/O engines complete.
func TestEveryEngineOfFioIsKnown(t *testing.T) {
	_, engines, _ := strings.Cut(fioSays(t, "--enghelp"), ":")
	for _, engine := range strings.Fields(engines) {
		_, diags := fiojob.Parse("t", "[a]\nioengine="+engine+"\n", fiojob.Options{})
		for _, d := range diags {
			if d.Code == "bad-value" {
				t.Errorf("ioengine=%s: %s", engine, d.Message)
			}
		}
	}
}

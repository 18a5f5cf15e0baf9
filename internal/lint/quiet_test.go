package lint_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/braggdev/bragg/internal/lint"
	"github.com/braggdev/bragg/internal/scenario"
)

// codesOf returns the codes of what lint finds in a scenario with two workloads and these steps of the run phase.
func codesOf(t *testing.T, description, steps string) []string {
	t.Helper()
	text := strings.NewReplacer("SAID", "7200", "description: text", "description: "+description,
		"results:\n", "  - Second: {vm_group: Workers, config_file: read.fio}\nresults:\n").Replace(blocksHead) + steps
	fsys := fstest.MapFS{"test.yml": {Data: []byte(text)}, "read.fio": {Data: []byte(files["read.fio"])}, "play.yml": {Data: []byte("[]")}}
	sc, err := scenario.Load(t.Context(), scenario.Source{FS: fsys, Name: "example", Trusted: true}, scenario.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var codes []string
	for _, f := range lint.Check(sc, catalog) {
		codes = append(codes, f.Code)
	}
	return codes
}

// TestWaitsForLoadsTakeTime: a workload.Wait lasts as long as its load has left, which is time for other loads and for the
// description too.
func TestWaitsForLoadsTakeTime(t *testing.T) {
	const steps = "  - workload.Start: {workload_name: Load, runtime_secs: 1800, async: true}\n" +
		"  - workload.Start: {workload_name: Second, runtime_secs: SECONDS, async: true}\n" +
		"  - test.Wait: {duration_secs: 600}\n  - workload.Wait: {workload_name: Second}\n"
	for _, c := range []struct {
		seconds, wait    string
		cutOff, disagree bool
	}{
		{"1800", "Wait for 20 minutes.", false, false},
		{"2400", "Wait for 30 minutes.", false, false},
		{"1200", "Wait for 10 minutes.", true, false},
		{"1800", "Wait for 50 minutes.", false, true},
	} {
		codes := codesOf(t, c.wait, strings.Replace(steps, "SECONDS", c.seconds, 1))
		if got := slices.Contains(codes, "async-cut-off"); got != c.cutOff {
			t.Errorf("a second load of %s s: async-cut-off is %v, in %q", c.seconds, got, codes)
		}
		if got := slices.Contains(codes, "description-disagrees"); got != c.disagree {
			t.Errorf("a second load of %s s, %q: description-disagrees is %v", c.seconds, c.wait, got)
		}
	}
}

// TestPublicPassword: the documented password of X-Ray's images does not cause a finding.
func TestPublicPassword(t *testing.T) {
	const step = "  - playbook.Run: {filename: play.yml, inventory: [Workers], remote_user: nutanix, remote_pass: PASSWORD}\n"
	for password, want := range map[string]int{"nutanix/4u": 0, "secret": 1} {
		found := 0
		for _, code := range codesOf(t, "text", strings.Repeat(strings.Replace(step, "PASSWORD", password, 1), 3)) {
			if code == "plain-password" {
				found++
			}
		}
		if found != want {
			t.Errorf("three steps with the password %q: %d findings, want %d", password, found, want)
		}
	}
}

package scenario_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/braggdev/bragg/internal/scenario"
)

func loadTrusted(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	fsys := fstest.MapFS{"test.yml": {Data: []byte(text)}, "job.fio": {Data: []byte("[j]\n")}}
	sc, err := scenario.Load(context.Background(), scenario.Source{FS: fsys, Name: "alias", Trusted: true}, scenario.Options{})
	if err != nil {
		t.Fatal(explain(err))
	}
	return sc
}

// TestAnchorsAndMergeKeys: the values are those that PyYAML 6 gives for the same text.
func TestAnchorsAndMergeKeys(t *testing.T) {
	sc := loadTrusted(t, plainHead+`x-size: &disks {count: 2, size: 8}
x-base: &base {template: t, vcpus: 4, ram_mb: 512, data_disks: *disks}
x-big: &big {vcpus: 16, ram_mb: 8192}
vms:
  - plain: *base
  - own: {<<: *base, vcpus: 8}
  - first: {<<: [*big, *base]}
  - second: {<<: [*base, *big]}
  - last:
      <<: *big
      ram_mb: 1024
      <<: *base
  - nested: {<<: {<<: *base, vcpus: 2}}
workloads:
  - w: {vm_group: plain, config_file: job.fio}
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: plain}
run:
  - test.Wait: &wait
      duration_secs: 5
  - test.Wait: *wait
`)
	want := map[string][2]int64{ // vCPUs and MiB
		"plain": {4, 512}, "own": {8, 512}, "first": {16, 8192}, "second": {4, 512}, "last": {4, 1024}, "nested": {2, 512},
	}
	for _, g := range sc.Groups {
		if got := [2]int64{int64(g.VCPUs), g.RAMBytes >> 20}; got != want[g.Name] || g.Template != "t" || g.DiskCount != 2 || g.DiskBytes != 8<<30 {
			t.Errorf("group %s: %v of %q with %d disks of %d, want %v", g.Name, got, g.Template, g.DiskCount, g.DiskBytes, want[g.Name])
		}
	}
	if len(sc.Groups) != len(want) || len(sc.Run) != 2 || sc.Run[1].Args[0].Value != int64(5) {
		t.Errorf("%d groups, run %+v", len(sc.Groups), sc.Run)
	}
}

// TestUnknownTopLevelKeys: they are warnings, but a slip of a key that has to be there is an error.
func TestUnknownTopLevelKeys(t *testing.T) {
	sc := loadTrusted(t, plainHead+"notes: {by: me}\ntag: [a]\n"+plainTail)
	var said []string
	for _, w := range sc.Warnings {
		said = append(said, w.Code+" "+w.Hint)
	}
	if got := strings.Join(said, "; "); got != `unknown-key X-Ray ignores it too; unknown-key did you mean "tags"?` {
		t.Errorf("warnings: %s", got)
	}
	_, err := scenario.Load(context.Background(), scenario.Source{FS: fstest.MapFS{"test.yml": {Data: []byte(strings.Replace(plainHead, "summary:", "summry:", 1) + plainTail)}},
		Name: "slip", Trusted: true}, scenario.Options{})
	if err == nil || !strings.Contains(explain(err), `did you mean "summary"?`) {
		t.Errorf("a slip: %v", err)
	}
}

package scenario_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/braggdev/bragg/internal/scenario"
)

// loadText loads a document that stands alone, in this process.
func loadText(text string, options scenario.Options) (*scenario.Scenario, error) {
	fsys := fstest.MapFS{"test.yml": {Data: []byte(text)}}
	return scenario.Load(context.Background(), scenario.Source{FS: fsys, Name: "s", Trusted: true}, options)
}

// The corpus as it is understood; a change of meaning shows here.
func TestCorpusIsUnderstood(t *testing.T) {
	var b strings.Builder
	for _, doc := range corpus(t) {
		sc, err := scenario.Load(context.Background(), scenario.Source{Path: doc, Trusted: true}, scenario.Options{})
		if err != nil {
			t.Fatal(explain(err))
		}
		fmt.Fprintf(&b, "%s %v %v\n", sc.Name, sc.Tags, sc.EstimatedRuntime)
		for _, v := range sc.Variables {
			fmt.Fprintf(&b, "  var %s = %T %v (%v to %v, %v)\n", v.Name, v.Value, v.Value, v.Min, v.Max, v.Options)
		}
		for _, g := range sc.Groups[:min(len(sc.Groups), 3)] {
			fmt.Fprintf(&b, "  group %s: %d CPUs, %d MiB, %d × %d GiB, nodes %q, %d per node, %d per cluster\n",
				g.Name, g.VCPUs, g.RAMBytes>>20, g.DiskCount, g.DiskBytes>>30, g.Nodes, g.PerNode, g.PerCluster)
		}
		for _, w := range sc.Workloads[:min(len(sc.Workloads), 4)] {
			fmt.Fprintf(&b, "  workload %s: %s on %s, every %v\n", w.Name, w.ConfigFile, w.Group, w.ReportingInterval)
		}
		for _, r := range sc.Results {
			fmt.Fprintf(&b, "  result %s: %s %s %s%s%s %s %v step %v mask %q", r.Name, r.Source, r.Type, r.Group, r.Workload, r.Metric,
				r.Aggregate, r.ReportMetrics, r.Step, r.Mask)
			if r.Expected != nil {
				fmt.Fprintf(&b, " expected %v %+v", *r.Expected, r.Bands)
			}
			fmt.Fprintln(&b)
		}
		for _, calls := range [][]scenario.Call{sc.Setup, sc.Run, sc.Teardown} {
			for _, c := range calls[:min(len(calls), 12)] {
				fmt.Fprintf(&b, "  %d: %s", c.Pos.Line, c.Name)
				for _, a := range c.Args {
					if strings.HasPrefix(a.Name, "remote_") {
						continue
					}
					fmt.Fprintf(&b, " %s=%T(%v)", a.Name, a.Value, a.Value)
				}
				fmt.Fprintln(&b)
			}
			fmt.Fprintln(&b, "  --")
		}
	}
	golden(t, "testdata/corpus.golden", b.String())
}

func TestVariablesAreChosen(t *testing.T) {
	text := plainHead + `vars:
  count: {default: 2, min: 1, max: 9}
  ratio: {default: 0.5}
  flag: {default: no}
  mode: {default: fast, options: [fast, slow]}
  menu: {default: [one], options: [one, two]}
  _hidden: {default: 7}
presets:
  big:
    vars: {count: 8, mode: slow}
vms:
  - g{{ count }}: {template: "{{ mode }}{{ menu }}{{ ratio * 2 }}{{ flag }}{{ _hidden }}"}
` + strings.TrimPrefix(plainTail, "vms: []\n")
	for _, c := range []struct {
		options  scenario.Options
		group    string
		template string
		origins  string
	}{
		{scenario.Options{}, "g2", "fastone1.0False7", "default default default default default default"},
		{scenario.Options{Preset: "big"}, "g8", "slowone1.0False7", "preset big default default preset big default default"},
		{scenario.Options{Preset: "big", Set: map[string]string{"count": "3", "flag": "yes", "ratio": "2"}}, "g3", "slowone4.0True7",
			"command line command line command line preset big default default"},
		{scenario.Options{Set: map[string]string{"menu": "two", "count": " 9 ", "_hidden": "-1"}}, "g9", "fasttwo1.0False-1",
			"command line default default default command line command line"},
	} {
		sc, err := loadText(text, c.options)
		if err != nil {
			t.Errorf("%+v: %s", c.options, explain(err))
			continue
		}
		var origins []string
		for _, v := range sc.Variables {
			origins = append(origins, v.Origin)
		}
		if g := sc.Groups[0]; g.Name != c.group || g.Template != c.template || strings.Join(origins, " ") != c.origins {
			t.Errorf("%+v: group %q, template %q, origins %q", c.options, g.Name, g.Template, origins)
		}
	}
	_, err := loadText(text, scenario.Options{Preset: "bgi", Set: map[string]string{
		"cuont": "3", "count": "many", "ratio": "half", "flag": "maybe", "mode": "medium", "_hidden": "1.5"}})
	golden(t, "testdata/overrides.golden", explain(err))
	_, err = loadText(plainHead+plainTail, scenario.Options{Preset: "big", Set: map[string]string{"count": "10"}})
	if err == nil || !strings.Contains(explain(err), "it offers none") {
		t.Errorf("got %v", err)
	}
}

func TestTheHashCoversWhatDecidesARun(t *testing.T) {
	text := plainHead + "vars:\n  a: {default: 1}\n  b: {default: x}\n" + plainTail
	hash := func(text string, set map[string]string) string {
		sc, err := loadText(text, scenario.Options{Set: set})
		if err != nil {
			t.Fatal(explain(err))
		}
		return sc.Hash
	}
	all := []string{hash(text, nil), hash(text, map[string]string{"a": "2"}), hash(text, map[string]string{"b": "1"}), hash(text+"#\n", nil)}
	if again := hash(text, map[string]string{"a": "1"}); again != all[0] {
		t.Error("setting the default changes the hash")
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 4 {
		t.Errorf("hashes repeat: %v", all)
	}
}

// Values mean what X-Ray's YAML reader and Python make of them.
func TestArgumentsKeepTheirTypes(t *testing.T) {
	sc, err := loadText(plainHead+`vars:
  runtime: {default: 240}
`+strings.Replace(plainTail, "duration_secs: 1", `a: True, b: yes, c: "yes", d: off, e: {{ runtime / 4 }}, f: 1_000, g: 0x10, h: 1:30, i: 1.5e3, j: ~,
      k: [1, two, 3.0], l: {x: {y: No}}, m: 010, n: "{{ runtime }}", o: 2026-01-01, p: -5, q: .5, r: 1e3, s: {{ flag|default(true) }}`, 1),
		scenario.Options{})
	if err != nil {
		t.Fatal(explain(err))
	}
	want := map[string]string{"a": "bool(true)", "b": "bool(true)", "c": "string(yes)", "d": "bool(false)", "e": "float64(60)",
		"f": "int64(1000)", "g": "int64(16)", "h": "string(1:30)", "i": "float64(1500)", "j": "<nil>(<nil>)",
		"k": "[]interface {}([1 two 3])", "l": "map[string]interface {}(map[x:map[y:false]])", "m": "string(010)", "n": "string(240)",
		"o": "string(2026-01-01)", "p": "int64(-5)", "q": "float64(0.5)", "r": "float64(1000)", "s": "bool(true)"}
	for _, a := range sc.Setup[0].Args {
		if got := fmt.Sprintf("%T(%v)", a.Value, a.Value); got != want[a.Name] {
			t.Errorf("%s: got %s, want %s", a.Name, got, want[a.Name])
		}
		delete(want, a.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// Windows line ends, a byte order mark and a last line without an end change nothing, positions included.
func TestLineEndsAndMarksDoNotMatter(t *testing.T) {
	plain := strings.Replace(document, "config_file: job.fio", "config_file: {{ 'job' }}.fio, colour: red", 1)
	messages := map[string]string{}
	for name, text := range map[string]string{
		"plain": plain, "windows": strings.ReplaceAll(plain, "\n", "\r\n"), "mark": "\ufeff" + plain, "cut": strings.TrimSuffix(plain, "\n"),
	} {
		dir := folder(t, text)
		_, err := load(dir)
		if err == nil {
			t.Fatalf("%s: loads", name)
		}
		messages[name] = strings.ReplaceAll(explain(err), dir, "")
	}
	for name, message := range messages {
		if message != messages["plain"] {
			t.Errorf("%s: %s\nplain: %s", name, message, messages["plain"])
		}
	}
}

func TestExtensionsAreRead(t *testing.T) {
	dir := folder(t, plainHead+`vms:
  - g: {template: t, exporter_ports: [9100, "9187"], data_disks: [16, 16], count_per_cluster: {{ 8 / 2 }}}
workloads:
  - base: {vm_group: g, generator: pgbench, options: {scale: 100, clients: 4.0, mode: select-only, quiet: yes}}
results:
  - r:
      workload_name: base
      result_type: Latency
      step: 30s
      expect: p99 < 5 ms
  - q:
      vm_group: g
      query: up{__curie_filter_vm_group__}
      expect:
        - mean > 1k
        - {that: "max <= 2", window: "before nodes.PowerOff"}
setup:
  - test.Wait: {duration_secs: 1}
run:
  - test.Wait: {duration_secs: 1}
`)
	sc, err := load(dir)
	if err != nil {
		t.Fatal(explain(err))
	}
	w := sc.Workloads[0]
	if w.Generator != "pgbench" || fmt.Sprint(w.Options) != "map[clients:4.0 mode:select-only quiet:yes scale:100]" {
		t.Errorf("workload %+v", w)
	}
	g := sc.Groups[0]
	if fmt.Sprint(g.ExporterPorts) != "[9100 9187]" || g.DiskCount != 2 || g.DiskBytes != 16<<30 || g.PerCluster != 4 {
		t.Errorf("group %+v", g)
	}
	r, q := sc.Results[0], sc.Results[1]
	if r.Type != "latency" || r.Step != 30*time.Second || len(r.Expect) != 1 || r.Expect[0].Value != 5e6 {
		t.Errorf("result %+v", r)
	}
	if q.Source != scenario.FromQuery || q.Type != "generic" || len(q.Expect) != 2 || q.Expect[1].Window != "before nodes.PowerOff" {
		t.Errorf("query %+v", q)
	}
	if p := q.Expect[1].Pos; p.Line != 21 || p.Column != 18 {
		t.Errorf("the threshold is at %s", p)
	}
}

// Trusted text and text from strangers are read by the same code, in another process.
func TestTheChildReadsTheSame(t *testing.T) {
	doc, err := os.ReadFile("testdata/faults/many.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, string(doc))
	_, fromChild := load(dir)
	_, here := scenario.Load(context.Background(), scenario.Source{Path: filepath.Join(dir, "test.yml"), Trusted: true}, scenario.Options{})
	if explain(fromChild) != explain(here) {
		t.Errorf("child: %s\nhere: %s", explain(fromChild), explain(here))
	}
}

func FuzzLoad(f *testing.F) {
	docs, _ := filepath.Glob("testdata/*/*.yml")
	for _, doc := range docs {
		if text, err := os.ReadFile(doc); err == nil {
			f.Add(string(text))
		}
	}
	f.Add(document)
	f.Fuzz(func(t *testing.T, text string) {
		sc, err := loadText(text, scenario.Options{})
		if err == nil && (sc.Name == "" || len(sc.Run) == 0) {
			t.Fatalf("loads as %+v", sc)
		}
		if err != nil {
			explain(err)
		}
	})
}

// TestWarmUp: only a workload has a warm-up that can be left out, and only auto finds it.
func TestWarmUp(t *testing.T) {
	const head = "name: s\ndisplay_name: s\nsummary: s\ndescription: s\nestimated_runtime: 60\n" +
		"vms: [{G: {template: t}}]\nworkloads: [{W: {vm_group: G, generator: native}}]\nsetup: [{a.B: {}}]\nrun: [{a.B: {}}]\nresults:\n"
	for _, c := range []struct{ result, code string }{
		{"{R: {workload_name: W, result_type: iops, warmup: auto}}", ""},
		{"{R: {vm_group: G, workload_mask: W, result_type: latency, warmup: auto}}", ""},
		{"{R: {vm_group: G, result_type: latency, warmup: auto}}", "warmup-of-nothing"},
		{"{R: {query: up, warmup: auto}}", "warmup-of-nothing"},
		{"{R: {metric: CpuUsage.Avg.Percent, workload_mask: W, warmup: auto}}", "warmup-of-nothing"},
		{"{R: {workload_name: W, result_type: iops, warmup: 30 s}}", "unknown-value"},
	} {
		sc, err := loadText(head+"  - "+c.result+"\n", scenario.Options{})
		if c.code == "" && (err != nil || sc.Results[0].WarmUp != "auto") {
			t.Errorf("%s: %v", c.result, err)
		}
		if c.code != "" && (err == nil || !strings.Contains(explain(err), c.code) || !strings.Contains(explain(err), "test.yml:11:")) {
			t.Errorf("%s: %v, want %s", c.result, err, c.code)
		}
	}
}

// TestOverlay: lines share a chart if they have a start and one unit.
func TestOverlay(t *testing.T) {
	const head = "name: s\ndisplay_name: s\nsummary: s\ndescription: s\nestimated_runtime: 60\n" +
		"vms: [{G: {template: t}}]\nworkloads: [{W: {vm_group: G, generator: native}}]\nsetup: [{a.B: {}}]\nrun: [{a.B: {}}]\nresults:\n"
	one := func(name, keys string) string {
		return "  - {" + name + ": {overlay: O, " + keys + "}}\n"
	}
	const iops = "workload_name: W, result_type: iops"
	nine := ""
	for i := range 9 {
		nine += one(fmt.Sprint("R", i), iops)
	}
	for _, c := range []struct{ results, code, at string }{
		{one("A", iops) + one("B", iops), "", ""},
		{one("A", iops), "overlay-of-one", "test.yml:11:"},
		{one("A", iops) + one("B", "workload_name: W, result_type: latency"), "overlay-of-two-types", "test.yml:12:"},
		{one("A", iops) + one("B", "query: up"), "overlay-of-nothing", "test.yml:12:"},
		{nine, "overlay-too-large", "test.yml:19:"},
	} {
		sc, err := loadText(head+c.results, scenario.Options{})
		if c.code == "" && (err != nil || sc.Results[1].Overlay != "O") {
			t.Errorf("%s: %v", c.results, err)
		}
		if c.code != "" && (err == nil || !strings.Contains(explain(err), c.code) || !strings.Contains(explain(err), c.at)) {
			t.Errorf("%s: %v, want %s at %s", c.results, err, c.code, c.at)
		}
	}
}

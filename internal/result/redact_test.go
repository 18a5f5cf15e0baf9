package result_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

func secretManifest() result.Manifest {
	m := manifest("run-1")
	m.Target = result.TargetInfo{
		Provider: "vsphere", Name: "prod-vc7.acme.example", Nodes: []result.NodeInfo{
			{ID: "4c4c4544-0042-3510-8054-b7c04f595032", Name: "esx01"}, {ID: "host-1022", Name: "esx011"},
		},
		Facts: [][2]string{{"storage", "array at 10.20.30.40 and fe80::1ff:fe23:4567:890a"}, {"firmware", "1.2.3"}},
	}
	m.Environment = map[string]string{"host": "runner17", "cpu model": "Intel(R) Xeon(R)", "runs": "/home/jane/runs"}
	m.CommandLine = []string{"bragg", "run", "four_corners", "--target", "/home/jane/targets/prod.yml", "--device", "/dev/sdb"}
	return m
}

func TestRedaction(t *testing.T) {
	m := secretManifest()
	r := result.NewRedactor(m)
	out, err := r.Manifest(m)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"acme", "4c4c4544", "esx01", "host-1022", "10.20.30.40", "fe80", "runner17", "jane"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%q is still in %s", secret, text)
		}
	}
	for _, kept := range []string{"Intel(R) Xeon(R)", "1.2.3", "four_corners", "/dev/sdb", "vsphere"} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("%q was lost from %s", kept, text)
		}
	}
	a, b := out.Target.Nodes[0], out.Target.Nodes[1]
	if a.ID != a.Name || a.ID == b.ID || b.ID != b.Name {
		t.Errorf("nodes: %+v, %+v", a, b)
	}
	// The same name has the same pseudonym everywhere, and a name inside another word is kept.
	e := r.Event(interval.Event{Subject: "esx01", Message: "power off esx01, not esx011 or resx01x, at 10.20.30.40", Group: "g"})
	if c := r.Event(interval.Event{Canceled: "branch 1: power off esx01"}); strings.Contains(c.Canceled, "esx01") {
		t.Errorf("reason of a cancellation: %+v", c)
	}
	if e.Subject != a.Name || !strings.Contains(e.Message, a.Name+", not "+b.Name+" or resx01x, at address-") || e.Group != "g" {
		t.Errorf("event: %+v", e)
	}
}

// Names that cannot be searched for in text, because they are short or words of the bundle itself, are replaced where
// a field holds nothing else; a label and relative paths are the user's own words.
func TestRedactionOfAwkwardNames(t *testing.T) {
	m := manifest("run-1")
	m.Label = "nightly of acme"
	m.Target = result.TargetInfo{Provider: "local", Name: "acme-lab-7", Nodes: []result.NodeInfo{{ID: "1", Name: "db"}, {ID: "h2", Name: "run"}}}
	m.Environment = map[string]string{"host": "ox", "file system device": "//nas01/export", "cpu model": "ox cart"}
	m.CommandLine = []string{"bragg", "run", "acme/four.yml", "vdi", "--target=tg2.yml", "--label", "nightly of acme", "--runs", "../jane", "--seed", "7"}
	r := result.NewRedactor(m)
	out, err := r.Manifest(m)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"bragg", "run", "path-1", "vdi", "--target=path-2", "--label", "label-1", "--runs", "path-3", "--seed", "7"}
	if !slices.Equal(out.CommandLine, want) {
		t.Errorf("command line %q, want %q", out.CommandLine, want)
	}
	if out.Label != "label-1" || out.Target.Name != "target-1" || out.Target.Nodes[0] != (result.NodeInfo{ID: "1", Name: "node-1"}) {
		t.Errorf("label %q, target %+v", out.Label, out.Target)
	}
	if n := out.Target.Nodes[1]; n.ID != n.Name || n.ID != "node-2" {
		t.Errorf("node %+v", n)
	}
	if out.Environment["host"] != "host-1" || out.Environment["file system device"] != "device-1" || out.Environment["cpu model"] != "ox cart" {
		t.Errorf("environment %v", out.Environment)
	}
	e := r.Event(interval.Event{Phase: "run", Node: "run", Subject: "db", Message: "h2 of acme-lab-7 by tg2.yml and ./x/y.yml: 3 ms"})
	if e.Phase != "run" || e.Node != "node-2" || e.Subject != "node-1" || e.Message != "node-2 of target-1 by path-2 and path-4: 3 ms" {
		t.Errorf("event %+v", e)
	}
	plan, err := r.JSON([]byte(`{"phase":"run","steps":[{"name":"run","node":"run"}],"target":{"name":"acme-lab-7","nodes":[{"name":"db"}]}}`))
	if err != nil || string(plan) != `{"phase":"run","steps":[{"name":"run","node":"node-2"}],"target":{"name":"target-1","nodes":[{"name":"node-1"}]}}` {
		t.Errorf("plan %s, %v", plan, err)
	}
}

func TestBuiltInTargetsKeepTheirNames(t *testing.T) {
	for _, name := range []string{"local", "local:8", "fake:4"} {
		m := manifest("run-1")
		m.Target = result.TargetInfo{Provider: strings.Split(name, ":")[0], Name: name}
		m.CommandLine = []string{"bragg", "run", "four_corners", "--target", name}
		out, err := result.NewRedactor(m).Manifest(m)
		if err != nil || out.Target.Name != name || out.CommandLine[4] != name {
			t.Errorf("%+v, %v", out, err)
		}
	}
}

func TestRedactedSummaryKeepsItsNumbers(t *testing.T) {
	r := result.NewRedactor(secretManifest())
	in := result.Summary{Verdict: result.Pass, Reason: "node esx01 came back", Duration: 1<<62 + 1, Results: []result.Evaluated{{
		Name: "IOPS", Series: []result.Series{{Name: "esx01", Points: result.Points{{Seconds: 0.5, Value: 1.25}}}},
		Stats: []result.Stats{{Series: "esx01", Count: 3, Distribution: result.Distribution{P999: 7}}},
	}}}
	out, err := r.Summary(in)
	if err != nil {
		t.Fatal(err)
	}
	node := out.Results[0].Series[0].Name
	if node == "esx01" || out.Reason != "node "+node+" came back" || out.Results[0].Stats[0].Series != node {
		t.Errorf("names: %+v", out)
	}
	if out.Duration != in.Duration || out.Results[0].Stats[0].P999 != 7 || out.Results[0].Series[0].Points[0].Value != 1.25 {
		t.Errorf("numbers: %+v", out)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("ssh esx01 at 10.1.2.3 or [fe80::1] /home/x/y http://a.b/c")
	f.Add("::::/ /// 1.1.1.1.1 -- esx")
	f.Fuzz(func(t *testing.T, text string) {
		once := result.NewRedactor(secretManifest()).Text(text + " esx01 10.20.30.40 ")
		for _, word := range strings.Fields(once) {
			if word == "esx01" || word == "10.20.30.40" {
				t.Errorf("%q became %q", text, once)
			}
		}
		if again := result.NewRedactor(secretManifest()).Text(text + " esx01 10.20.30.40 "); again != once {
			t.Errorf("not the same twice: %q, %q", once, again)
		}
	})
}

func TestNumberJSON(t *testing.T) {
	in := result.Stats{Distribution: result.Distribution{Mean: 1.5, Max: result.Number(nan())}}
	text, err := json.Marshal(in)
	if err != nil || !strings.Contains(string(text), `"max":null`) {
		t.Fatalf("%s, %v", text, err)
	}
	var out result.Stats
	if err := json.Unmarshal(text, &out); err != nil || out.Mean != 1.5 || out.Max == out.Max {
		t.Errorf("%+v, %v", out, err)
	}
	points := result.Points{{Seconds: 1, Value: nan()}, {Seconds: 2, Value: 3}}
	if text, err = json.Marshal(points); err != nil || string(text) != "[[1,null],[2,3]]" {
		t.Errorf("%s, %v", text, err)
	}
	var back result.Points
	if err := json.Unmarshal(text, &back); err != nil || back[0].Value == back[0].Value || back[1].Value != 3 {
		t.Errorf("%+v, %v", back, err)
	}
}

func nan() float64 {
	var zero float64
	return zero / zero
}

// TestRedactionOfShortNames: names that also occur with other meanings are replaced where only a machine can be meant.
func TestRedactionOfShortNames(t *testing.T) {
	m := secretManifest()
	m.Target.Nodes = []result.NodeInfo{{ID: "A", Name: "A"}}
	out, err := result.NewRedactor(m).Summary(result.Summary{Impacts: []result.Impact{{Kind: result.ImpactNodeOff, Subjects: []string{"A"}}}})
	if err != nil || out.Impacts[0].Subjects[0] != "node-1" {
		t.Errorf("%+v (%v)", out.Impacts, err)
	}
}

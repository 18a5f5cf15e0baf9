package result_test

import (
	"encoding/json"
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
	// The same name has the same pseudonym everywhere, and a name inside another word is left alone.
	e := r.Event(interval.Event{Subject: "esx01", Message: "power off esx01, not esx011 or resx01x, at 10.20.30.40", Group: "g"})
	if e.Subject != a.Name || !strings.Contains(e.Message, a.Name+", not "+b.Name+" or resx01x, at address-") || e.Group != "g" {
		t.Errorf("event: %+v", e)
	}
}

func TestRedactedSummaryKeepsItsNumbers(t *testing.T) {
	r := result.NewRedactor(secretManifest())
	in := result.Summary{Verdict: result.Pass, Reason: "node esx01 came back", Duration: 1<<62 + 1, Results: []result.Evaluated{{
		Name: "IOPS", Series: []result.Series{{Name: "esx01", Points: result.Points{{Seconds: 0.5, Value: 1.25}}}},
		Stats: []result.Stats{{Series: "esx01", Count: 3, P999: 7}},
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
	in := result.Stats{Mean: 1.5, Max: result.Number(nan())}
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

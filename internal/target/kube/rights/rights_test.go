package rights_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/kube/rights"
)

type manifest struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Rules    []struct {
		APIGroups        []string `yaml:"apiGroups"`
		Resources, Verbs []string
	}
}

func read(t *testing.T, text string) []manifest {
	t.Helper()
	var all []manifest
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var m manifest
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		all = append(all, m)
	}
}

// The Role that is printed grants exactly what is checked.
func TestRoleIsWhatIsChecked(t *testing.T) {
	for _, kind := range rights.Kinds() {
		text, err := rights.Install{Namespace: "bench", Kind: kind, Nodes: true}.Manifests()
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		granted := map[string]bool{}
		for _, m := range read(t, text) {
			kinds = append(kinds, m.Kind)
			for _, r := range m.Rules {
				for _, verb := range r.Verbs {
					granted[m.Kind+" "+verb+" "+r.Resources[0]+"."+r.APIGroups[0]] = true
				}
			}
		}
		if want := []string{"Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}; !slices.Equal(kinds, want) {
			t.Errorf("manifests of %q, want %q", kinds, want)
		}
		for _, r := range rights.Of(kind) {
			in := "Role"
			if r.Cluster {
				in = "ClusterRole"
			}
			for _, verb := range r.Verbs {
				key := in + " " + verb + " " + r.Resource + "." + r.Group
				if !granted[key] {
					t.Errorf("%s: no %s", kind, key)
				}
				delete(granted, key)
			}
		}
		if len(granted) > 0 {
			t.Errorf("%s: more than is checked: %v", kind, granted)
		}
	}
}

// Secrets are never listed: those of others in the namespace stay unread.
func TestSecretsAreNotListed(t *testing.T) {
	for _, r := range rights.Of(rights.KindPod) {
		if r.Resource == "secrets" && (slices.Contains(r.Verbs, "list") || slices.Contains(r.Verbs, "watch")) {
			t.Errorf("right to %s", r)
		}
		if slices.Contains(r.Verbs, "*") || r.Resource == "*" || strings.Contains(r.Resource, "exec") {
			t.Errorf("right to %s", r)
		}
	}
}

func job() *rights.Job {
	return &rights.Job{Image: "registry.example.com/bragg:1", Scenario: "four_corners", AgentImage: "registry.example.com/bragg-agent:1", Class: "fast"}
}

// jobManifest is what a test reads of a Job, its target file and its volume.
type jobManifest struct {
	Kind string
	Data map[string]string
	Spec struct {
		Class     string `yaml:"storageClassName"`
		Resources struct{ Requests struct{ Storage string } }
		Template  struct {
			Spec struct {
				Containers []struct{ Command []string }
			}
		}
	}
}

func TestJob(t *testing.T) {
	text, err := rights.Install{Namespace: "bench", Job: job()}.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	all := read(t, text)
	if len(all) != 7 || all[6].Kind != "Job" || !strings.Contains(text, "pool: fast") {
		t.Errorf("got %s", text)
	}
	for _, bad := range []rights.Install{{}, {Namespace: "Bench"}, {Namespace: "a\nb"}, {Namespace: "bench", Account: "a b"}} {
		if _, err := bad.Manifests(); diag.ExitCode(err) != diag.ExitUsage {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for name, change := range map[string]func(*rights.Job){
		"image":         func(j *rights.Job) { j.Image = "x: {y}" },
		"scenario":      func(j *rights.Job) { j.Scenario = "--help" },
		"no image":      func(j *rights.Job) { j.Image = "" },
		"class":         func(j *rights.Job) { j.Class = "a\n  b: c" },
		"no agents":     func(j *rights.Job) { j.AgentImage = "" },
		"agents twice":  func(j *rights.Job) { j.Target = "provider: kubernetes\n" },
		"class of runs": func(j *rights.Job) { j.RunsClass = "a b" },
		"size of runs":  func(j *rights.Job) { j.RunsSize = "10 GB" },
		"argument":      func(j *rights.Job) { j.Arguments = []string{"--set", "a=\x1b[31m"} },
		"target":        func(j *rights.Job) { j.AgentImage, j.Class, j.Target = "", "", "a: \x00" },
	} {
		j := job()
		change(j)
		if _, err := (rights.Install{Namespace: "bench", Job: j}).Manifests(); diag.ExitCode(err) != diag.ExitUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Arguments reach the run as they were given, whatever YAML and the cluster make of their characters, and so does a target file.
func TestJobIsAsGiven(t *testing.T) {
	j := job()
	j.Arguments = []string{"--set", `filter=a: {b}, "c" 'd' # e`, "--label", "$(HOME) costs $5 <&>", "--rehearse", "60s", "no", ""}
	j.AgentImage, j.Class, j.Target = "", "", "  # by hand\nprovider: kubernetes\noptions:\n  image: 'a:1'\n\n  agents: direct"
	j.RunsClass, j.RunsSize = "slow", "256Mi"
	text, err := rights.Install{Namespace: "bench", Job: j}.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var m jobManifest
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		switch m.Kind {
		case "ConfigMap":
			if got := m.Data["target.yml"]; strings.TrimRight(got, "\n") != j.Target {
				t.Errorf("the target file is %q, want %q", got, j.Target)
			}
		case "PersistentVolumeClaim":
			if m.Spec.Class != "slow" || m.Spec.Resources.Requests.Storage != "256Mi" {
				t.Errorf("the volume is %+v", m.Spec)
			}
		case "Job":
			got := m.Spec.Template.Spec.Containers[0].Command
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], "$$", "$") // as a cluster does
			}
			want := append([]string{"bragg", "run", "four_corners", "--target", "/etc/bragg/target.yml", "--runs", "/runs"}, j.Arguments...)
			if !slices.Equal(got, want) {
				t.Errorf("the command is %q, want %q", got, want)
			}
		}
	}
}

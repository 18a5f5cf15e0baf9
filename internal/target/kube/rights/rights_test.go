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

func TestJob(t *testing.T) {
	i := rights.Install{Namespace: "bench", Image: "registry.example.com/bragg:1", AgentImage: "registry.example.com/bragg-agent:1", Scenario: "four_corners", Class: "fast"}
	text, err := i.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	all := read(t, text)
	if len(all) != 7 || all[6].Kind != "Job" || !strings.Contains(text, "pool: fast") {
		t.Errorf("got %s", text)
	}
	for _, bad := range []rights.Install{
		{}, {Namespace: "Bench"}, {Namespace: "a\nb"}, {Namespace: "bench", Account: "a b"}, {Namespace: "bench", Image: "x: {y}"},
		{Namespace: "bench", Image: "bragg"}, {Namespace: "bench", Class: "a\n  b: c"},
	} {
		if _, err := bad.Manifests(); diag.ExitCode(err) != diag.ExitUsage {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

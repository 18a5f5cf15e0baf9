package builtin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/builtin"
	"github.com/braggdev/bragg/internal/target"
)

// TestEveryKind: the kinds that target files may name are those of the list, and each is complete.
func TestEveryKind(t *testing.T) {
	var names []string
	for _, k := range builtin.Kinds() {
		names = append(names, k.Name)
		if k.Summary == "" || k.Interval == 0 || k.Open == nil {
			t.Errorf("kind %q: %+v", k.Name, k)
		}
	}
	slices.Sort(names)
	known := target.SourceKinds()
	slices.Sort(known)
	if !slices.Equal(names, known) {
		t.Errorf("kinds %v, target files may name %v", names, known)
	}
}

// TestSecretsThatCannotBeRead: the error names the source, and nothing is opened.
func TestSecretsThatCannotBeRead(t *testing.T) {
	c := &target.Config{Credentials: map[string]target.Credential{"x": {Secret: target.Secret{Env: "BRAGG_NO_SUCH_VARIABLE"}}}}
	for _, kind := range target.SourceKinds() {
		_, err := builtin.Open(t.Context(), c, collect.Options{Source: target.Source{Name: "s", Kind: kind, URL: "https://127.0.0.1:1", Credential: "x"}})
		if err == nil || !strings.Contains(err.Error(), `source "s": read secret`) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestSimulatedPlatform: counters of the platform itself are simulated if it simulates its metrics; those of other sources are not.
func TestSimulatedPlatform(t *testing.T) {
	c := &target.Config{Provider: target.SourceVSphere, Endpoint: "vc.lab", Simulates: map[target.Capability]string{target.CapNodeMeter: "random"},
		Sources: []target.Source{{Name: "vc", Kind: target.SourceVSphere}, {Name: "other", Kind: target.SourceVSphere, URL: "https://other.lab"}}}
	if list := builtin.Facts(c); !list[0].Simulated || list[1].Simulated {
		t.Errorf("got %+v", list)
	}
}

package contract_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/kube/kubetest"
)

// A namespace and a storage class that do not exist are found before a run, both at once, and what the user may not see is not missing.
func TestPremises(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1")
	c := simulated(t, s)
	c.Pool, c.Options["namespace"] = "fats", "bnech"
	_, err := openOnly(t, c)
	for _, want := range []string{`there is no namespace "bnech"`, `there is no storage class "fats" (found: fast and full)`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if user := new(diag.Error); !errors.As(err, &user) || !strings.Contains(user.Hint, "bragg kube install --namespace bnech") {
		t.Errorf("hint of %v", err)
	}
	s.Denied["list storageclasses"] = true
	c.Options["namespace"] = kubetest.Namespace
	if _, err := openOnly(t, c); err != nil {
		t.Errorf("without the right to list storage classes: %v", err)
	}
}

package kube

import (
	"errors"
	"fmt"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
)

// VMs that fail for one reason are named once, however their claims and ports are called.
func TestAlike(t *testing.T) {
	var errs []error
	for i := range 4 {
		name := fmt.Sprintf("Workers-000%d", i+1)
		errs = append(errs, nil, fmt.Errorf("create vm %q: claim \"bragg-workers-000%d-%d4e-sdb\" has no volume: 10.0.0.%d refused", name, i+1, i, i))
	}
	errs = append(errs, errors.New(`create vm "Workers-0005": exceeded quota`))
	got := diag.Sentence(errors.Join(few(errs)...))
	want := `create vm "Workers-0001": claim "bragg-workers-0001-04e-sdb" has no volume: 10.0.0.0 refused (and 3 more VMs alike); create vm "Workers-0005": exceeded quota`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

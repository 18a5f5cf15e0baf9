package target

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
)

// Identified is implemented by targets that are reached at an address which another platform may have later: one that was installed again, or another
// one of the same name.
type Identified interface {
	// Identity tells the platform from all others. It does not change as long as the platform exists.
	Identity(ctx context.Context) (string, error)
}

// IdentityOf returns the identity of a target's platform; "" if it has none.
func IdentityOf(ctx context.Context, t Target) (string, error) {
	i, ok := t.(Identified)
	if !ok {
		return "", nil
	}
	id, err := i.Identity(ctx)
	if err != nil {
		return "", fmt.Errorf("identify the target: %w", err)
	}
	return id, nil
}

// CodeAnother is the code of a target that is another platform than expected.
const CodeAnother = "target-another"

// CheckIdentity refuses a target whose platform is not the one with that identity, with CodeAnother: what a run left is not there. Any other
// error says that the identity cannot be read now. An identity that the run did not know is not compared.
func CheckIdentity(ctx context.Context, t Target, want string) error {
	now, err := IdentityOf(ctx, t)
	if err != nil || want == "" || now == "" || now == want {
		return err
	}
	return &diag.Error{
		Code: CodeAnother, Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("the target is %q, and the run used %q at the same address", now, want),
		Hint:    "VMs of the run may be on the other one: reach it at that address and clean again; if it is gone, remove the journal of the run from .control in the folder of runs",
	}
}

package program

import (
	"context"
	"errors"
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
)

// codeTotals is the code of the error of TotalsDiffer.
const codeTotals = "totals-differ"

// TotalsDiffer is the error of a load whose record and whose program's own totals disagree: no number of it holds.
func TotalsDiffer(format string, args ...any) *diag.Error {
	return &diag.Error{Code: codeTotals, Exit: diag.ExitUndecided, Message: fmt.Sprintf(format, args...)}
}

// Outcome returns the error of a load with its name. A load that was stopped has none, because the stop causes most of them, unless
// its totals differ: programs that are stopped complete what is in flight and print what they did.
func Outcome(ctx context.Context, workload string, err error) error {
	var told *diag.Error
	if err == nil || ctx.Err() != nil && !(errors.As(err, &told) && told.Code == codeTotals) {
		return nil
	}
	return fmt.Errorf("run workload %q: %w", workload, err)
}

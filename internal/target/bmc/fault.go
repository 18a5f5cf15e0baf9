package bmc

import (
	"context"
	"errors"
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
)

// fault is an error of a BMC. All faults exit the process with ExitUnavailable, except a certificate that is not the pinned
// one, which may mean a man in the middle.
func fault(code, node, what string, err error) *diag.Error {
	e := &diag.Error{Code: code, Exit: diag.ExitUnavailable, Message: fmt.Sprintf("%s through the BMC of node %q", what, node), Err: err}
	e.Hint = hints[code]
	if code == CodeCertificate {
		e.Exit = diag.ExitRefused
	}
	return e
}

var hints = map[string]string{
	CodeUnreachable: "does its address answer from here, and is IPMI over LAN or Redfish switched on? some BMCs say nothing to a user they do not know",
	CodeLogin:       "check user and secret in the target file; it is not retried at once, because BMCs lock users out",
	CodeForbidden:   "the user needs the role Operator, or another role that may switch the power",
	CodeProgram:     "install it (Debian: apt install ipmitool), or use Redfish",
	CodeGarbage:     "is this address a BMC, and the protocol right? bragg targets check reads it without changing anything",
	CodeNoEffect:    "look at the BMC's own log: a policy or a firmware update may keep it from switching",
	CodeUnsteady:    "something else switches this node: a watchdog, a power policy, or a person",
}

// finalCodes are faults that a retry cannot fix or makes worse: BMCs lock users out.
var finalCodes = map[string]bool{
	CodeLogin: true, CodeForbidden: true, CodeCertificate: true, CodeProgram: true, CodeCredential: true, CodeLacks: true,
	CodeSystem: true,
}

func codeOf(err error) string {
	var userErr *diag.Error
	if errors.As(err, &userErr) {
		return userErr.Code
	}
	return ""
}

func final(err error) bool { return finalCodes[codeOf(err)] }

// ended returns the error of an ended context; for a deadline it says that the BMC did not answer.
func ended(ctx context.Context, node, what string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault(CodeUnreachable, node, what, errors.New("no answer in time"))
	}
	return context.Cause(ctx)
}

// reason is the cause of a fault, without operation and node.
func reason(err error) error {
	var userErr *diag.Error
	if errors.As(err, &userErr) && userErr.Err != nil {
		return userErr.Err
	}
	return err
}

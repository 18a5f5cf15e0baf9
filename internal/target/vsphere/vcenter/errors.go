package vcenter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/trust"
)

// saidRunesMax bounds what vCenter can add to a message.
const saidRunesMax = 300

// Gone reports whether an object does not exist any more.
func Gone(err error) bool { return fault.Is(err, &types.ManagedObjectNotFound{}) }

// Taken reports whether an object of that name exists already.
func Taken(err error) bool {
	return fault.Is(err, &types.DuplicateName{}) || fault.Is(err, &types.AlreadyExists{})
}

// WrongPower reports whether a VM has another power state than the operation needs.
func WrongPower(err error) bool { return fault.Is(err, &types.InvalidPowerState{}) }

// Busy reports whether another task keeps an object from being changed now.
func Busy(err error) bool {
	return fault.Is(err, &types.TaskInProgress{}) || fault.Is(err, &types.ConcurrentAccess{}) || fault.Is(err, &types.ResourceInUse{})
}

// kindOf names the fault of an error as the API does, "" without one.
func kindOf(err error) string {
	var f types.BaseMethodFault
	if !isFault(err, &f) { // and not fault.In, which panics at a chain that ends with an Unwrap that returns nil, as of net.DNSError
		return ""
	}
	t := reflect.TypeOf(f)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// explain puts the action before an error and names what the user can do.
func (l *link) explain(action string, err error) error {
	var known *diag.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrClosed), errors.As(err, &known):
		return fmt.Errorf("%s: %w", action, err)
	}
	e := &diag.Error{Code: "vsphere-error", Exit: diag.ExitUnavailable, Message: action, Err: &cause{err, l.scrub}}
	var certificate *trust.CertificateError
	var denied *types.NoPermission
	switch status := statusOf(err); {
	case errors.As(err, &certificate):
		e.Code, e.Err, e.Hint = "vsphere-certificate", certificate, certificate.Hint
	case fault.Is(err, &types.InvalidLogin{}):
		e.Code, e.Message = "vsphere-login", fmt.Sprintf("%s: it refuses user %q or the password", action, l.name())
		e.Hint, e.Err = "check the entry \"platform\" of credentials in the target file", nil
	case isFault(err, &denied):
		e.Code, e.Exit = "vsphere-privilege", diag.ExitUnavailable
		e.Message, e.Err = fmt.Sprintf("%s: user %q lacks the privilege %s", action, l.name(), denied.PrivilegeId), nil
		if denied.Object != nil {
			e.Message += " on " + l.describe(*denied.Object)
		}
		e.Hint = "bragg targets check lists all privileges that are missing"
	case fault.Is(err, &types.NotAuthenticated{}):
		e.Code, e.Hint = "vsphere-session", "the session ended again right after a login: look for a limit of sessions of this user"
	case status >= 400 && status < 500 && status != http.StatusTooManyRequests:
		e.Code, e.Hint = "vsphere-unreachable", "it answers, but not as a vCenter does: check the endpoint of the target file, and proxies in front of it"
	case status != 0:
		e.Code, e.Hint = "vsphere-busy", "the vCenter, or a proxy in front of it, does not take the call"
	case kindOf(err) == "":
		e.Code, e.Hint = "vsphere-unreachable", "curl -k https://"+l.host+"/sdk shows whether it answers"
	}
	return e
}

func isFault[T any](err error, to *T) bool {
	_, ok := fault.As(err, to)
	return ok
}

// cause is an error of vCenter on one line, with the name of its fault.
type cause struct {
	err   error
	scrub func(string) string // of the password
}

func (c *cause) Error() string {
	text := textio.Clip(textio.Line(c.scrub(c.err.Error())), saidRunesMax)
	text = strings.TrimPrefix(text, "ServerFaultCode: ")
	if kind := kindOf(c.err); kind != "" && !strings.Contains(text, kind) {
		if text == "" {
			return kind
		}
		text += " (" + kind + ")"
	}
	return text
}

func (c *cause) Unwrap() error { return c.err }

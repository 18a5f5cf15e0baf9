package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/trust"
)

// wordsMax bounds what the cluster can add to a message.
const wordsMax = 600

// Words are a text of the cluster, fit for a message.
func Words(text string) string { return textio.Clip(textio.Line(text), wordsMax) }

// Codes of errors.
const (
	CodeUnauthorized = "kube-unauthorized"
	CodeForbidden    = "kube-forbidden"
	CodeQuota        = "kube-quota"
	CodeAdmission    = "kube-admission"
	CodeBusy         = "kube-busy"
	CodeUnreachable  = "kube-unreachable"
	CodeRefused      = "kube-refused"
	CodeMissing      = "kube-not-found"
	CodeExists       = "kube-exists"
	CodeLogin        = "kube-login"
	CodeCertificate  = "kube-certificate"
)

// explain puts an error of a call into words: what was tried, what the cluster said, what to do.
func (c *Client) explain(what string, err error) error {
	e := &diag.Error{Message: what, Exit: diag.ExitUnavailable, Err: err}
	var status apierrors.APIStatus
	if refused(err) {
		e.Code, e.Err = CodeRefused, worded{plain(err)}
		return e
	}
	if !errors.As(err, &status) {
		return c.unanswered(what, err)
	}
	e.Err = worded{err}
	switch text := strings.ToLower(err.Error()); {
	case apierrors.IsUnauthorized(err):
		e.Code, e.Hint = CodeUnauthorized, "the token or certificate has expired or is not known to the cluster: log in again, or renew the secret of the target file"
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota"):
		e.Code, e.Hint = CodeQuota, "kubectl describe resourcequota shows what is used; smaller or fewer VMs need less"
	case apierrors.IsForbidden(err) && (strings.Contains(text, "violates podsecurity") || strings.Contains(text, "admission") || strings.Contains(text, "limitrange") ||
		strings.Contains(text, "maximum") || strings.Contains(text, "minimum")):
		e.Code, e.Hint = CodeAdmission, "a policy of the namespace refuses the object"
	case apierrors.IsForbidden(err) && strings.Contains(text, "cannot "):
		e.Code, e.Hint = CodeForbidden, "bragg kube install prints a Role with what is needed"
	case strings.Contains(text, "admission webhook"):
		e.Code, e.Hint = CodeAdmission, "an admission webhook of the cluster refuses the object"
	case apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err):
		e.Code, e.Hint = CodeBusy, "the API server was busy for as long as it was tried"
	case apierrors.IsNotFound(err):
		e.Code = CodeMissing
	case apierrors.IsAlreadyExists(err):
		e.Code = CodeExists
	default:
		e.Code = CodeRefused
	}
	return e
}

// plain leaves out the address of a request, which the library puts before errors.
func plain(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

// execMark is how the library begins the error of a login program of the kubeconfig. It has no type of its own.
const execMark = "getting credentials: "

// unanswered explains a call that the API server did not answer, or did not get.
func (c *Client) unanswered(what string, err error) error {
	err = plain(err)
	e := &diag.Error{
		Code: CodeUnreachable, Message: fmt.Sprintf("%s: the API server %s does not answer", what, c.Host), Exit: diag.ExitUnavailable, Err: worded{err},
		Hint: "kubectl get --raw /readyz shows whether it does",
	}
	var pinned *trust.CertificateError
	var refused *tls.CertificateVerificationError
	switch _, login, ok := strings.Cut(err.Error(), execMark); {
	case ok:
		login, _, _ = strings.Cut(strings.TrimPrefix(login, "exec: "), "\n") // what follows is a lecture
		e.Code, e.Err = CodeLogin, nil
		e.Message = fmt.Sprintf("%s: the login program of the kubeconfig: %s", what, Words(login))
		e.Hint = "kubectl get --raw /readyz runs the same program and shows its messages"
	case errors.As(err, &pinned):
		e.Code, e.Hint = CodeCertificate, pinned.Hint
		e.Message = fmt.Sprintf("%s: reach the API server %s", what, c.Host)
	case errors.As(err, &refused):
		e.Code, e.Message = CodeCertificate, fmt.Sprintf("%s: reach the API server %s", what, c.Host)
		e.Hint = "the kubeconfig is of another cluster, or its certificate-authority-data is old: fetch it again"
	}
	return e
}

// worded is an error of the server, with a bounded text.
type worded struct{ error }

func (w worded) Error() string { return Words(w.error.Error()) }
func (w worded) Unwrap() error { return w.error }

// MissingNamespace is the error of calls in a namespace that does not exist.
func MissingNamespace(name string) error {
	return &diag.Error{
		Code: "kube-namespace", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("there is no namespace %q", name),
		Hint: "check options: {namespace: …} of the target file, or make it: bragg kube install --namespace " + name + " | kubectl apply -f -",
	}
}

// NoNamespace reports whether a call failed because its namespace does not exist. NotFound is true as well.
func NoNamespace(err error) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status) && apierrors.IsNotFound(status) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "namespaces"
}

// NotFound reports whether an object, or its kind, does not exist.
func NotFound(err error) bool { return apierrors.IsNotFound(cause(err)) }

// Exists reports whether an object of that name exists.
func Exists(err error) bool { return apierrors.IsAlreadyExists(cause(err)) }

// Conflict reports whether an object has changed since it was read.
func Conflict(err error) bool { return apierrors.IsConflict(cause(err)) }

// Forbidden reports whether a right is missing.
func Forbidden(err error) bool { return apierrors.IsForbidden(cause(err)) }

// Refused reports whether the server does not know the user, or does not grant the user a right.
func Refused(err error) bool { return Forbidden(err) || apierrors.IsUnauthorized(cause(err)) }

func cause(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status
	}
	return err
}

package prism

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/trust"
)

// Codes of errors.
const (
	CodeUnreachable = "prism-unreachable"
	CodeCertificate = "prism-certificate"
	CodeLogin       = "prism-login"
	CodeForbidden   = "prism-forbidden"
	CodeTask        = "prism-task"
	CodeVersion     = "prism-version"
)

// textRunesMax bounds what Prism can add to a message.
const textRunesMax = 300

// StatusError is an answer with which Prism refuses a request.
type StatusError struct {
	What   string // method and path
	Status int
	Text   string // Prism's own words
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("Prism answers %d %s to %s", e.Status, http.StatusText(e.Status), e.What)
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// ExitCode implements the interface of package diag: what Prism refuses is not an error of this program.
func (e *StatusError) ExitCode() int { return diag.ExitUnavailable }

// Temporary reports whether the same request may succeed later.
func (e *StatusError) Temporary() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// IsStatus reports whether err is an answer with that status.
func IsStatus(err error, status int) bool {
	var e *StatusError
	return errors.As(err, &e) && e.Status == status
}

// IsGone reports whether the object of a request does not exist.
func IsGone(err error) bool {
	return IsStatus(err, http.StatusNotFound) || IsStatus(err, http.StatusGone)
}

func what(r Request) string {
	path := r.Raw
	if path == "" {
		path = r.Namespace + "/" + r.Path
	}
	return r.Method + " " + path
}

// refusal makes the error of an answer that is not a success.
func (c *Client) refusal(r Request, a Answer) error {
	e := &StatusError{What: what(r), Status: a.Status, Text: c.words(messagesIn(a.Body))}
	switch a.Status {
	case http.StatusUnauthorized:
		return &diag.Error{
			Code: CodeLogin, Exit: diag.ExitUnavailable, Message: fmt.Sprintf("log in to Prism at %s", c.Address()), Err: e,
			Hint: "check the credential \"platform\" (user, secret) or \"api_key\" of the target file, and whether the account is locked",
		}
	case http.StatusForbidden:
		return &diag.Error{
			Code: CodeForbidden, Exit: diag.ExitUnavailable, Message: "the user of Prism lacks a privilege", Err: e,
			Hint: "docs/guides/nutanix.md lists the operations that a role needs",
		}
	}
	return e
}

// words makes messages of Prism fit for a line of an error.
func (c *Client) words(messages []string) string {
	return textio.Clip(textio.Line(c.scrub(strings.Join(messages, "; "))), textRunesMax)
}

// messagesIn finds the messages of an error, which the versions of the API keep in different places.
func messagesIn(body []byte) []string {
	var tree any
	if len(body) > errorBytesMax {
		return nil
	}
	if json.Unmarshal(body, &tree) != nil {
		return nil // a page of a proxy
	}
	var found []string
	collect(tree, &found, 0)
	return found
}

const (
	depthMax    = 8
	messagesMax = 5
	// errorBytesMax is more than any error has: in memory, small objects take a hundred times their text.
	errorBytesMax = 1 << 20
)

func collect(node any, found *[]string, depth int) {
	if depth > depthMax || len(*found) >= messagesMax {
		return
	}
	switch node := node.(type) {
	case map[string]any:
		for _, key := range []string{"message", "detailed_message", "error_detail"} {
			if text, ok := node[key].(string); ok && text != "" {
				*found = append(*found, text)
				break
			}
		}
		for _, key := range []string{"data", "error", "errors", "messages", "message_list", "errorMessages", "validationErrorMessages", "status"} {
			collect(node[key], found, depth+1)
		}
	case []any:
		for _, one := range node {
			collect(one, found, depth+1)
		}
	}
}

func isCertificate(err error) bool {
	var refused *trust.CertificateError
	return errors.As(err, &refused)
}

// unreachable is the error of a request without an answer.
func (c *Client) unreachable(err error) error {
	e := &diag.Error{
		Code: CodeUnreachable, Exit: diag.ExitUnavailable, Message: fmt.Sprintf("reach Prism at %s", c.Address()), Err: errors.New(c.scrub(err.Error())),
		Hint: "the endpoint must be the address of Prism Central; without a port in it, the port is 9440",
	}
	var refused *trust.CertificateError
	if errors.As(err, &refused) {
		e.Code, e.Err, e.Hint = CodeCertificate, refused, refused.Hint
	}
	return e
}

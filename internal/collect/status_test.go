package collect_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/diag"
)

// A refused login says what to do, without the JSON text of the server.
func TestRefusedLogin(t *testing.T) {
	for _, c := range []struct {
		status       int
		reason, want string
		hint         bool
	}{
		{401, `{"$objectType":"clustermgmt.v4.error.ErrorApiResponse"}`, `source "prism": 401 Unauthorized`, true},
		{403, "no access", `source "prism": 403 Forbidden: no access`, true},
		{500, `{"error":"internal"}`, `source "prism": 500 Internal Server Error: {"error":"internal"}`, false},
	} {
		err := fmt.Errorf("read: %w", &collect.StatusError{Source: "prism", Status: c.status, Reason: c.reason})
		var user *diag.Error
		if got := err.Error(); got != "read: "+c.want || errors.As(err, &user) != c.hint || c.hint && user.Hint == "" {
			t.Errorf("%s, %+v", got, user)
		}
	}
}

package target

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
)

// Mark identifies the owner of an object on the target: a digest of the tag that does not reveal the nonce, so that reading
// an object does not allow claiming others.
func (t Tag) Mark() string {
	h := sha256.New()
	for _, part := range []string{"bragg ownership 1", t.Controller, t.Run, t.Nonce} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Check refuses an incomplete tag, which could claim objects of others.
func (t Tag) Check() error {
	const nonceDigits = 32
	if t.Run == "" || len(t.Nonce) < nonceDigits {
		return &diag.Error{
			Code: "target-bad-tag", Message: fmt.Sprintf("act on a target for run %q: the ownership tag is incomplete", t.Run),
		}
	}
	return nil
}

// Foreign is the error for an object that carries another tag, or none.
func Foreign(what string) error {
	return &diag.Error{
		Code: "target-foreign-object", Exit: diag.ExitRefused, Message: fmt.Sprintf("%s belongs to another owner", what),
		Hint: "it was not changed",
	}
}

// PowerForbidden is the error for a power operation on a node that the owner of the target does not allow.
func PowerForbidden(node string) error {
	return &diag.Error{
		Code: "target-power-forbidden", Exit: diag.ExitRefused,
		Message: fmt.Sprintf("switch node %q: the target file does not allow power operations", node),
		Hint:    "allow them with \"allow: {node_power: true}\" in the target file",
	}
}

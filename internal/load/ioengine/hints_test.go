package ioengine_test

import (
	"errors"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// hints returns what an error advises.
func hints(err error) string {
	var list *diag.ListError
	if !errors.As(err, &list) {
		return ""
	}
	var all []string
	for _, d := range list.List {
		all = append(all, d.Hint)
	}
	return strings.Join(all, "; ")
}

//go:build !linux

package lab

import (
	"context"
	"io"

	"github.com/braggdev/bragg/internal/diag"
)

// Started tells that nothing was started by a lab.
func Started([]string) bool { return false }

// Main is the program behind Verb.
func Main([]string) int { return 1 }

func unavailable() error {
	return &diag.Error{
		Code: "lab-linux", Exit: diag.ExitUnavailable, Message: "make a lab: this is not Linux", Hint: "labs are namespaces of Linux",
	}
}

// Up makes no lab here.
func Up(context.Context, Options) (*Lab, io.Closer, error) { return nil, nil, unavailable() }

// Down has no labs to remove here.
func Down(context.Context, string, []string, bool) ([]string, error) { return nil, unavailable() }

// Alive reports whether the keeper of a lab runs.
func (l *Lab) Alive() bool { return false }

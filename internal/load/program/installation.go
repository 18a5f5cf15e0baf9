package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// Installation is a program that users bring themselves, in a folder of its own. The machine names the folder. A scenario cannot: it is
// untrusted, and a program of that folder is run.
type Installation struct {
	Name     string // of the product, in messages
	Program  string // a file in the folder
	Variable string // of the environment, with the folder
	File     string // with the folder, on machines whose agents do not get variables
	Hint     string // how to install it
	// Usual returns the folder, and where it was found, if neither variable nor file names one; nil: there is none. UsualPlaces are where
	// it looks.
	Usual       func() (folder, from string)
	UsualPlaces []string
}

// Missing is the error of a machine without the installation.
func (i Installation) Missing(format string, args ...any) error {
	return &diag.Error{Code: "program-missing", Exit: diag.ExitUnavailable, Message: fmt.Sprintf(format, args...), Hint: i.Hint}
}

// Find returns the folder.
func (i Installation) Find() (string, error) {
	home, from := os.Getenv(i.Variable), i.Variable
	if home == "" {
		text, err := readSmall(i.File, endpointBytesMax)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		home, from = strings.TrimSpace(string(text)), i.File
	}
	if home == "" && i.Usual != nil {
		home, from = i.Usual()
	}
	switch {
	case home == "":
		return "", i.Missing("find %s on this machine: %s is not set, and there is no %s", i.Name, i.Variable, strings.Join(append([]string{i.File}, i.UsualPlaces...), ", no "))
	case !filepath.IsAbs(home):
		return "", i.Missing("find %s on this machine: %s has %q, which is not a whole path", i.Name, from, home)
	}
	if info, err := os.Stat(filepath.Join(home, i.Program)); err != nil || !info.Mode().IsRegular() {
		return "", i.Missing("find %s on this machine: the folder %s, from %s, has no %s", i.Name, home, from, i.Program)
	}
	return home, nil
}

package target

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/diag"
)

// FilePath returns the path of a file that the target file names, relative to the target file.
func (c *Config) FilePath(value string) string {
	if filepath.IsAbs(value) {
		return value
	}
	return filepath.Join(filepath.Dir(c.File), value)
}

// CheckTemplateFile returns why the file of a template cannot be read. It does not look into it.
func (c *Config) CheckTemplateFile(name string) error {
	info, err := os.Stat(c.FilePath(c.Templates[name]))
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", c.FilePath(c.Templates[name]))
	}
	if err == nil {
		return nil
	}
	return &diag.Error{
		Code: "target-template-file", Exit: diag.ExitData, Message: fmt.Sprintf("find template %q", name), Err: err,
		Hint: "paths are relative to the target file; docs/guides/images.md describes how to build an image",
	}
}

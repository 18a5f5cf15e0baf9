package results

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/report"
)

// formChoice is --format and --json of a command with several forms.
type formChoice struct {
	names  []string // the default first
	format string
	json   bool
}

func (c *formChoice) flags(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&c.format, "format", "", "`FORM` "+usage)
	flags.BoolVar(&c.json, console.FormJSON, false, "the same as --format json")
}

// choose returns the requested form: by --json, by --format, by the extension of the file to write, otherwise "".
func (c *formChoice) choose(out string) (string, error) {
	switch {
	case c.json && c.format != "" && c.format != console.FormJSON:
		return "", console.BadFlag("--json conflicts with --format "+c.format, "use one of them")
	case c.json:
		return console.FormJSON, nil
	case c.format == "":
		return c.ofFile(out)
	case slices.Contains(c.names, c.format):
		return c.format, nil
	}
	hint := c.list()
	if near := diag.Nearest(c.format, c.names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return "", console.BadFlag("unknown format "+strconv.Quote(c.format), hint)
}

// ofFile returns the format for the extension of a file, "" for a name without extension. An extension of no format of the
// command is refused: a page in a file named .pdf is useless.
func (c *formChoice) ofFile(out string) (string, error) {
	extension := strings.ToLower(filepath.Ext(out))
	if extension == "" || out == "-" {
		return "", nil
	}
	for _, r := range report.Renderers() {
		if r.Extension == extension && slices.Contains(c.names, r.Name) {
			return r.Name, nil
		}
	}
	if extension == ".htm" && slices.Contains(c.names, "html") {
		return "html", nil
	}
	return "", console.BadFlag("--out "+strconv.Quote(out)+": cannot write "+extension+" files", c.list()+"; --format FORMAT overrides the extension")
}

func (c *formChoice) list() string {
	return "formats are " + strings.Join(c.names[:len(c.names)-1], ", ") + " and " + c.names[len(c.names)-1]
}

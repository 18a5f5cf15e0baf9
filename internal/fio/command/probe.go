package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
)

// probes are options that query version and features, and run nothing. Wrappers of fio use them before they choose options.
var probes = []string{"version", "cmdhelp", "enghelp"}

// probe answers such an option, and reports whether there was one.
func probe(p *console.Process, args []string) (bool, error) {
	exact := slices.Contains(args, "--fio-exact")
	for i, word := range args {
		key, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if word == "--" || !strings.HasPrefix(word, "-") {
			continue
		}
		if word == "-v" {
			key = "version"
		}
		if !slices.Contains(probes, key) {
			continue
		}
		if !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			value = args[i+1]
		}
		var text string
		var err error
		switch key {
		case "version":
			text = versionText(exact) + "\n"
		case "cmdhelp":
			text, err = commandHelp(value)
		case "enghelp":
			text, err = engineHelp(value)
		}
		if err == nil {
			_, err = fmt.Fprint(p.Stdout, text)
		}
		return true, err
	}
	return false, nil
}

// versionText begins with the release of fio whose output and options are supported, which programs look for; with exact
// there is no other text.
func versionText(exact bool) string {
	if exact {
		return fioreport.FormatVersion
	}
	return fioreport.FormatVersion + " (bragg " + console.Version() + ")"
}

// commandHelp describes one option of jobs, or lists all.
func commandHelp(name string) (string, error) {
	if name != "" && name != "all" {
		return optionHelp(name)
	}
	var b strings.Builder
	for _, name := range fiojob.Names() {
		d, _ := fiojob.Describe(name)
		if d.Host == syntax.Native {
			fmt.Fprintf(&b, "%-24s: %s\n", name, d.Text)
		}
	}
	return b.String(), nil
}

func optionHelp(name string) (string, error) {
	d, ok := fiojob.Describe(name)
	if !ok {
		hint := ""
		if near := diag.Nearest(name, fiojob.Names()); near != "" {
			hint = "did you mean " + near + "?"
		}
		return "", &diag.Error{Code: "unknown-option", Message: fmt.Sprintf("unknown option %s", strconv.Quote(name)), Hint: hint, Exit: diag.ExitUsage}
	}
	state := map[syntax.Class]string{
		syntax.Native: "supported", syntax.Ignored: "accepted without effect", syntax.Delegate: "not supported", syntax.Refused: "refused",
	}[d.Host]
	return fmt.Sprintf("%20s: %s\n%20s: %s\n%20s: %s\n", name, d.Text, "type", d.Value, "state", state), nil
}

// engineHelp lists the I/O engines, or describes how one is implemented; an option follows after a comma.
func engineHelp(value string) (string, error) {
	engine, option, _ := strings.Cut(value, ",")
	engines := fiojob.Engines()
	switch {
	case engine == "":
		return "Available IO engines:\n\t" + strings.Join(engines, "\n\t") + "\n", nil
	case !slices.Contains(engines, engine):
		return "", &diag.Error{
			Code: "unknown-engine", Message: fmt.Sprintf("unknown I/O engine %s", strconv.Quote(engine)), Hint: strings.Join(engines, ", "), Exit: diag.ExitUsage,
		}
	case option != "":
		return optionHelp(option)
	}
	kind, _, _ := backend.Of(engine)
	return fmt.Sprintf("%s: done by %s\n", engine, kind), nil
}

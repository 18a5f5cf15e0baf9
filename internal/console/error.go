package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
)

// exitWith carries only an exit code: the command has already printed everything.
type exitWith int

func (e exitWith) Error() string { return "exit " + strconv.Itoa(int(e)) }
func (e exitWith) ExitCode() int { return int(e) }

// ExitWith turns an exit code into the error of a command; nil for ExitPass.
func ExitWith(code int) error {
	if code == diag.ExitPass {
		return nil
	}
	return exitWith(code)
}

// PrintError prints an error for the user, once, and returns the exit code.
func (p *Process) PrintError(err error) int {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		code := diag.ExitPass
		for _, e := range joined.Unwrap() {
			code = cmp.Or(code, p.PrintError(e))
		}
		return code
	}
	var silent exitWith
	var list *diag.ListError
	var told *diag.Error
	switch {
	case err == nil:
		return diag.ExitPass
	case errors.As(err, &silent):
		return int(silent)
	case errors.As(err, &list):
		p.printList(list.List)
	case errors.As(err, &told):
		p.printUserError(err, told)
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(p.Stderr, "%s: stopped\n", p.Name)
	default:
		told = explain(err)
		if !OutputClosed(err) {
			p.printUserError(told, told)
		}
		return told.ExitCode()
	}
	return diag.ExitCode(err)
}

// OutputClosed reports whether standard output has no reader any more, as behind "| head", and its user knows.
func OutputClosed(err error) bool {
	var write *fs.PathError
	return errors.As(err, &write) && write.Path == os.Stdout.Name() && errors.Is(write.Err, syscall.EPIPE)
}

func (p *Process) printUserError(err error, told *diag.Error) {
	fmt.Fprintf(p.Stderr, "%s: %s\n", p.Name, textio.Lines(err.Error()))
	if told.Hint != "" {
		fmt.Fprintf(p.Stderr, "  %s\n", strings.ReplaceAll(told.Hint, "\n", "\n  "))
	}
}

// printList renders diagnostics and counts them.
func (p *Process) printList(list diag.List) {
	PrintDiagnostics(p.Stderr, list)
	errorCount := 0
	for _, d := range list {
		if d.Severity == diag.SeverityError {
			errorCount++
		}
	}
	if errorCount > 0 {
		fmt.Fprintf(p.Stderr, "%s: %s\n", p.Name, textio.Plural(errorCount, "error"))
	}
}

func PrintDiagnostics(w io.Writer, list diag.List) {
	// The command's own output reports a closed terminal; this write would have no reader.
	_ = diag.Render(w, list)
}

// explain adds an exit code and a hint to a plain error of the operating system. An unknown error is a bug in Bragg.
func explain(err error) *diag.Error {
	told := &diag.Error{Message: err.Error(), Exit: diag.ExitUnavailable, Code: "system"}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		told.Hint = "free some space, or choose another folder with --runs DIR"
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		told.Hint = "choose a writable folder with --runs DIR, or run bragg doctor"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		told.Hint = "raise the limit of open files: ulimit -n 65536"
	case errors.Is(err, durable.ErrForeign):
		told.Exit, told.Code = diag.ExitRefused, "foreign-file"
		told.Hint = "look where it leads, and remove it; after cp -al, copy the folder with cp -a"
	case errors.Is(err, durable.ErrLocked):
		told.Exit, told.Code = diag.ExitLocked, "locked-folder"
		told.Hint = "another program locks the folder, which bragg never does for long: lsof +D shows it"
	case errors.Is(err, result.ErrDamaged):
		told.Hint = "the bundle was modified or damaged; bragg runs show RUN lists the files"
	case errors.Is(err, result.ErrNewer):
		told.Hint = "it was written by a newer bragg: update this one"
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENOTEMPTY):
	default:
		told.Exit, told.Code = diag.ExitInternal, "defect"
		told.Hint = "internal error: please report it with the output of bragg --version"
	}
	return told
}

// PrintPanic hides Go's stack from users; set BRAGG_DEBUG to print it for debugging.
func (p *Process) PrintPanic(fault any) int {
	fmt.Fprintf(p.Stderr, "%s: internal error: %v\n", p.Name, fault)
	fmt.Fprintf(p.Stderr, "  please report it with the output of %s --version; BRAGG_DEBUG=1 prints the stack\n", p.Name)
	fmt.Fprintf(p.Stderr, "  if a run was active, clean up with: bragg clean\n")
	if p.Getenv("BRAGG_DEBUG") != "" {
		fmt.Fprintf(p.Stderr, "%s\n", debug.Stack())
	}
	return diag.ExitInternal
}

func flagError(cmd *cobra.Command, err error) error {
	told := &diag.Error{
		Code: "bad-flag", Message: err.Error(), Exit: diag.ExitUsage,
		Hint: cmd.CommandPath() + " --help shows the flags",
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		flag, value := "--"+invalid.GetFlag().Name, invalid.GetValue()
		expected := map[string]string{"duration": "a time with a unit", "int": "an integer", "int64": "an integer", "uint64": "an integer of at least 0",
			"float64": "a number", "bool": "true or false"}[invalid.GetFlag().Value.Type()]
		if expected != "" {
			told.Message = fmt.Sprintf("%s %q is not %s", flag, value, expected)
		}
		if invalid.GetFlag().Value.Type() == "duration" {
			example := value + "s"
			if _, err := time.ParseDuration(example); err != nil {
				example = "60s"
			}
			told.Hint = "for example " + flag + " " + example
		}
	}
	return told
}

// UsageError is wrong usage of one command.
func UsageError(cmd *cobra.Command, format string, args ...any) error {
	return &diag.Error{
		Code: "usage", Message: fmt.Sprintf(format, args...), Exit: diag.ExitUsage, Hint: "usage: " + cmd.UseLine(),
	}
}

// Between checks the number of arguments; most < 0 means no bound.
func Between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return UsageError(cmd, "%s needs %s", cmd.CommandPath(), textio.Plural(least, "argument"))
		case most == 0 && len(args) > 0:
			return UsageError(cmd, "%s takes no argument, got %s", cmd.CommandPath(), strconv.Quote(args[0]))
		case most > 0 && len(args) > most:
			return UsageError(cmd, "%s takes at most %s, got %d", cmd.CommandPath(), textio.Plural(most, "argument"), len(args))
		}
		return nil
	}
}

func BadFlag(message, hint string) error {
	return &diag.Error{Code: "bad-flag", Message: message, Hint: hint, Exit: diag.ExitUsage}
}

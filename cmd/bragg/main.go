// Command bragg runs scenarios against storage and virtualised infrastructure and reports what happened.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/braggdev/bragg/internal/cli"
)

func main() {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bragg: find this program:", err)
		os.Exit(70)
	}
	directory, err := os.Getwd()
	if err != nil {
		directory = "/"
	}
	os.Exit(cli.Main(context.Background(), cli.Process{
		Arguments: os.Args[1:], Getenv: os.Getenv, Directory: directory, Executable: self,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: term.IsTerminal(int(os.Stdout.Fd())), Size: terminalSize, Signals: signals, Exit: os.Exit,
	}))
}

// terminalSize returns zeros where standard output is no terminal.
func terminalSize() (columns, rows int) {
	columns, rows, _ = term.GetSize(int(os.Stdout.Fd()))
	return columns, rows
}

// Command bragg runs scenarios against storage and virtualised infrastructure and reports what happened.
package main

import (
	"context"
	"os"

	"github.com/braggdev/bragg/internal/cli"
	"github.com/braggdev/bragg/internal/console"
)

func main() { os.Exit(cli.Main(context.Background(), console.New("bragg"))) }

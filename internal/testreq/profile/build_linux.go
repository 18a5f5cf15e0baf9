package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// built is what it took to build one test binary. What other packages compiled before, or an earlier run, is not in it.
type built struct {
	Tests         bool // the package has tests
	Wall          time.Duration
	Compile, Link time.Duration // CPU time
}

// action is what the go command says of one of its actions with -debug-actiongraph.
type action struct {
	Mode            string
	CmdUser, CmdSys time.Duration
}

// build compiles and links the tests of a package.
func build(ctx context.Context, p listedPackage, binary string) (b built, err error) {
	graph := binary + ".json"
	command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", binary, "-debug-actiongraph", graph, p.ImportPath)
	began := time.Now()
	if text, err := command.CombinedOutput(); err != nil {
		return built{}, fmt.Errorf("build the tests of %s: %w\n%s", p.ImportPath, err, text)
	}
	b.Wall = time.Since(began)
	if _, err := os.Stat(binary); err != nil {
		return built{}, nil // no tests: go test -c writes nothing
	}
	b.Tests = true
	text, err := os.ReadFile(graph)
	if err != nil {
		return built{}, err
	}
	var actions []action
	if err := json.Unmarshal(text, &actions); err != nil {
		return built{}, fmt.Errorf("%s: %w", graph, err)
	}
	for _, a := range actions {
		if a.Mode == "link" {
			b.Link += a.CmdUser + a.CmdSys
		} else {
			b.Compile += a.CmdUser + a.CmdSys
		}
	}
	return b, nil
}

package session

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// The folders among a bundle's attachments that a run may fill.
const (
	logsFolder   = "logs"   // of agents, one file per VM
	outputFolder = "output" // of programs of the scenario, which run there
)

// outputDir makes the folder for programs of the scenario, where the user allows them; otherwise there is none.
func (x *execution) outputDir() (string, error) {
	if !x.Plan.AllowShell {
		return "", nil
	}
	return x.record.writer.AttachFolder(outputFolder)
}

// collectLogs copies the logs of the agents of running VMs into the bundle. One that fails does not keep others out.
func (x *execution) collectLogs(ctx context.Context, vms []target.VM) error {
	var errs []error
	asked := 0
	for _, vm := range vms {
		if vm.Power != target.PowerOn {
			continue
		}
		asked++
		if err := x.collectLog(ctx, vm); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("collect logs: %d of %d VMs failed: %w", len(errs), asked, errs[0])
	}
	return nil
}

// logWithin bounds how long one agent may take to return its log: a silent agent may stay silent forever.
const logWithin = time.Minute

func (x *execution) collectLog(ctx context.Context, vm target.VM) error {
	ctx, cancel := context.WithTimeout(ctx, logWithin)
	defer cancel()
	client, err := x.agents.Client(ctx, vm)
	if err != nil {
		return err
	}
	text, err := client.Log(ctx)
	if err != nil {
		return fmt.Errorf("VM %q: %w", vm.Name, err)
	}
	return x.record.writer.Attach(logsFolder+"/"+vm.Name+".log", bytes.NewReader(text))
}

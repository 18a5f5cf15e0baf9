package lab

import (
	"context"
	"errors"
	"slices"
)

// Power is the state of a host's power, as Redfish calls it.
type Power string

// States of power.
const (
	PowerOn          Power = "On"
	PowerOff         Power = "Off"
	PowerPoweringOff Power = "PoweringOff" // asked to shut down, and at it
)

// Reset is what is done to the power of a host, as Redfish calls it.
type Reset string

// Kinds of resets.
const (
	ResetOn               Reset = "On"
	ResetForceOn          Reset = "ForceOn"
	ResetForceOff         Reset = "ForceOff"
	ResetForceRestart     Reset = "ForceRestart"
	ResetPowerCycle       Reset = "PowerCycle"
	ResetGracefulShutdown Reset = "GracefulShutdown"
	ResetPushPowerButton  Reset = "PushPowerButton"
)

var resets = []Reset{
	ResetOn, ResetForceOn, ResetForceOff, ResetForceRestart, ResetPowerCycle, ResetGracefulShutdown, ResetPushPowerButton,
}

// errReset is the error for a kind of reset that nobody knows.
var errReset = errors.New("there is no such kind of reset")

// chassis is what a BMC front switches: one host. Its methods may be called at the same time.
type chassis interface {
	Power() Power
	// Reset returns when power was cut, or switched on: a host that was switched on is not up yet.
	Reset(ctx context.Context, kind Reset) error
}

// checkReset refuses what is not in the list.
func checkReset(kind Reset) error {
	if !slices.Contains(resets, kind) {
		return errReset
	}
	return nil
}

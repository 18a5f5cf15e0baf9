// Package chassis is the BMC of one simulated host: a Redfish service, and the configuration and commands of OpenIPMI's
// simulator. Whose power it switches it learns as a Chassis.
//
//	Redfish, IPMI ──Reset──▶ Chassis
package chassis

import (
	"context"
	"errors"
	"net/netip"
	"slices"
)

// User is who may switch power.
const User = "bragg"

// Machine is a host as its BMC describes it.
type Machine struct {
	Name, UUID, Serial string
	BMC                netip.Addr
}

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

// errReset is the error for an unknown reset type.
var errReset = errors.New("unknown reset type")

// Chassis is what a BMC front switches: one host. Its methods may be called at the same time.
type Chassis interface {
	Power() Power
	// Reset returns when power was cut, or switched on: a host that was switched on is not up yet.
	Reset(ctx context.Context, kind Reset) error
}

// CheckReset refuses what is not in the list.
func CheckReset(kind Reset) error {
	if !slices.Contains(resets, kind) {
		return errReset
	}
	return nil
}

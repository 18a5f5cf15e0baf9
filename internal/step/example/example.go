// Package example has the texts of which the examples of steps are made.
package example

// Head begins the examples of all kinds: a small scenario with one group and one workload whose job file is
// load.fio. Each example adds its phases.
const Head = `name: example
display_name: Example
summary: What one step looks like in a scenario
description: An example of the guide to steps.
tags: [example]
estimated_runtime: 60
vms:
  - Workers:
      template: ubuntu1604
      data_disks:
        count: 1
        size: 1
      count_per_node: 1
`

const Load = Head + `workloads:
  - Load:
      vm_group: Workers
      config_file: load.fio
results:
  - Load IOPS:
      workload_name: Load
      result_type: iops
      aggregate: sum
`

// Idle is an example with an idle group.
const Idle = Head + "workloads: []\nresults: []\n"

// Deployed is Load with the group deployed and running as the first step of setup.
const Deployed = Load + `
setup:
  - vm_group.CloneFromTemplate:
      vm_group_name: Workers
      power_on: True
`

// Wait is a run phase that only waits for a second.
const Wait = `run:
  - test.Wait:
      duration_secs: 1
`

// Job is the text of load.fio, the job file of all examples.
const Job = `[global]
ioengine=libaio
direct=1
time_based
norandommap

[disk0]
filename=/dev/sdb
size=64m
bs=8k
rw=randread
iodepth=4
`

// Playbook is the text of site.yml, the playbook of the example of playbook.Run.
const Playbook = `- hosts: Workers
  tasks:
    - name: Report how often the test repeats
      ansible.builtin.debug:
        msg: "{{ iterations }} iterations"
`

package timeline

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
)

// Evidence is what shows a workload's past.
type Evidence int

const (
	// FromRevisions means that its revisions show it.
	FromRevisions Evidence = iota
	// FromPods means that its pods show it, besides its revisions.
	FromPods
)

// Past is the API server's answer about a workload's revisions.
type Past struct {
	// Asked is false before the revisions were queried.
	Asked     bool
	Revisions []Revision
	// Refused is why they can't be read. There may still be some.
	Refused error
	// NotActed is true when the status of the workload is about an earlier template, even
	// though its controller reports the generation as observed. Nothing else is known then.
	NotActed bool
	// Starts are when the pods of the current revision started, if that was queried.
	Starts pods.Starts
}

// Timeline is the known history of one workload and one of its inputs. Bounds order
// writes with certainty. Times are those of the API server; they have a resolution of a
// second and are used only where an error is harmless.
//
// Its methods answer the questions of a decision: was this version delivered to the
// workload before, and when?
type Timeline struct {
	// ID is the input.
	ID       input.ID
	Workload Workload
	Input    Input
	Record   Record
	// Following is since when the workload's kind and the input's kind are followed;
	// Begun is false when they weren't before this process.
	Following time.Time
	Begun     bool
	// Past contains the workload's revisions, if they were queried.
	Past Past
}

// Workload is the history that a workload shows.
type Workload struct {
	// Created is when the workload was created.
	Created time.Time
	// Template bounds the last change of its pod template.
	Template Bounds
	// TemplateAt is when its pod template was last written, as far as managed fields show; a write of another field may
	// have moved it.
	TemplateAt time.Time
	// Unrevised is true when no revision of that template exists, and none will before a
	// user or a tool acts.
	Unrevised bool
	// Unrolled is true while pods are created from another template, or may be: the
	// template was changed during a pause.
	Unrolled bool
	// OlderPods is true when pods of an earlier template may still have run when that
	// template was taken up.
	OlderPods bool
	// Asked bounds the last change of the settings for the workload, on it or its
	// namespace; AskedAt is when it asked to be followed, zero when that isn't known.
	Asked   Bounds
	AskedAt time.Time
	// Listed bounds the list that the workload came with, zero when the watch saw its
	// creation.
	Listed Bounds
	// RolledOutAt is the time of our own patch that wrote the template's versions, zero
	// when another writer did.
	RolledOutAt time.Time
	// Rewritten is true when another writer may have changed the template after that patch.
	Rewritten bool
	// Shows is the template's mark of the input.
	Shows input.Mark
}

// Input is the history that an input shows.
type Input struct {
	// Created is when it was created, WrittenAt when its content was last written; zero
	// when that isn't known.
	Created, WrittenAt time.Time
	// Content bounds the last change of its content.
	Content Bounds
	// Asked bounds the last change of its own annotation that asks workloads to follow
	// it, zero when it hasn't changed while it was watched.
	Asked Bounds
	// Version is the beginning of the current version.
	Version string
	// Missed bounds a write before which the content may have been another one that no watch saw, zero
	// without one.
	Missed Bounds
	// New is true while the watch has seen no other content since the input was created.
	New bool
	// Mounted is true when the workload mounts it, and Sealed when its content can't change any
	// more.
	Mounted, Sealed bool
	// Shows is the mark in a template to which the current version was delivered.
	Shows input.Mark
}

// Record is the recorded state of the workload.
type Record struct {
	// Known is true when there is an entry with inputs, or was one that cannot be read.
	Known bool
	// Version is the resource version with which the API server stored the entry, zero when unknown.
	Version uint64
	// KnowsTemplate is true when it lists which template it takes into account. A program that
	// doesn't query revisions doesn't.
	KnowsTemplate bool
	// Unaccounted is true when another writer has changed the template since, and pods
	// start from it, or when the version on record is one of other keys than the template uses.
	Unaccounted bool
	// Shown is the mark that our last patch set for the input, zero when none did.
	Shown input.Mark
	// RolledOutAt is the time of our last patch that the record takes into account, AsOf
	// that of the last write by any writer; zero when there is none.
	RolledOutAt, AsOf time.Time
	// From identifies which revisions the workload had before the version on record, and
	// Was is the beginning of the previous version.
	From Origin
	Was  string
	// Waits is true when the pods on record could not start without the input.
	Waits bool
	// TakenOver is true when the entry belongs to another workload, whose pods this one
	// took over.
	TakenOver bool
	// Delivering is the mark that a running series of evictions delivers, zero when there is
	// none.
	Delivering input.Mark
	// Searched is true when a pattern that matches the input was resolved before, and the
	// input didn't exist.
	Searched bool
	// Accounted is the number of the last revision that the record takes into account, zero
	// for kinds without numbers.
	Accounted int64
}

// Revision is one ReplicaSet or ControllerRevision of a workload.
type Revision struct {
	Name    string
	Created time.Time
	// Number is its latest number, zero for a ControllerRevision; Earlier are the
	// previous ones.
	Number  int64
	Earlier []int64
	// Written is the resource version of its last write.
	Written uint64
	// Current is true for the one that new pods of the workload are created from.
	Current bool
	// Shown are the marks in its template, and Text is a digest of their written form.
	Shown input.Marks
	Text  string
}

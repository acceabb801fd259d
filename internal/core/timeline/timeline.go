package timeline

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Past is what the API server says of a workload's revisions.
type Past struct {
	// Asked is false while nobody has asked.
	Asked     bool
	Revisions []Revision
	// Refused is why they may not be read. That is not to say that there are none.
	Refused error
	// NotActed is true when the status of the workload is about an earlier template, although
	// its controller calls the generation observed. Nothing else is known then.
	NotActed bool
}

// Timeline is what happened to one workload and one of its inputs, as far as it is
// known. Bounds order writes with certainty. Times are those of the API server; they
// are a second coarse and serve only where an error is harmless.
//
// Its methods are the questions that a decision asks: was the workload given this
// before, and when?
type Timeline struct {
	// ID is the input that it is about.
	ID       input.ID
	Workload Workload
	Input    Input
	Record   Record
	// Following is since when the kind of the workload and that of the input are
	// followed; Begun is false when they were not before this process.
	Following time.Time
	Begun     bool
	// Past is what was asked for of the workload's revisions.
	Past Past
}

// Workload is what a workload shows of its history.
type Workload struct {
	// Created is when the workload was made.
	Created time.Time
	// Template bounds the last change of its pod template; TemplateAt is when another writer
	// last wrote it, as far as its managed fields tell.
	Template   Bounds
	TemplateAt time.Time
	// Unrevised is true when no revision was made of that template, and none will be
	// before a person or a tool acts.
	Unrevised bool
	// Unrolled is true while pods are made from another template, or may be: it was changed
	// during a pause.
	Unrolled bool
	// OlderPods is true when pods of an earlier template may still have run when that
	// template was taken up.
	OlderPods bool
	// Asked bounds when the workload or its namespace last changed what is asked for
	// it; AskedAt is when it was asked for, zero when that cannot be told.
	Asked   Bounds
	AskedAt time.Time
	// Listed bounds the list that the workload came with, zero when the watch saw it
	// being made.
	Listed Bounds
	// RolledOutAt is the time of the patch of ours that wrote the versions which the
	// template shows, zero when another writer did.
	RolledOutAt time.Time
	// Shows is what the template shows of the input.
	Shows input.Mark
}

// Input is what an input shows of its history.
type Input struct {
	// Created is when it was made, WrittenAt when its content was last written; zero
	// when that cannot be told.
	Created, WrittenAt time.Time
	// Content bounds the last change of its content.
	Content Bounds
	// Asked bounds the last change of its own annotation that asks for its users, zero
	// when it has not changed while it was watched.
	Asked Bounds
	// Version is the beginning of the version that exists.
	Version string
	// New is true while its content is the one that it was made with, as the watch saw.
	New bool
	// Shows is what a template shows that was given what exists now.
	Shows input.Mark
}

// Record is what is remembered of the workload.
type Record struct {
	// Known is true when there is an entry with inputs, or was one that cannot be read.
	Known bool
	// KnowsTemplate is true when it says which template it takes into account.
	KnowsTemplate bool
	// Unaccounted is true when another writer has changed the template since, and pods
	// start from it.
	Unaccounted bool
	// Shown is what our last patch showed of the input, zero when none did.
	Shown input.Mark
	// RolledOutAt is the time of the last patch of ours that the record takes into
	// account, AsOf that of the last write by anybody; zero when there is none.
	RolledOutAt, AsOf time.Time
	// From tells which revisions the workload had before the version on record, and Was is
	// the beginning of the one before that.
	From Origin
	Was  string
	// TakenOver is true when it is that of another workload, whose pods this one took over.
	TakenOver bool
	// Giving is what a series of evictions that has begun gives of the input, zero when
	// there is none.
	Giving input.Mark
	// Searched is true when a pattern that means the input was resolved before, and the
	// input was not there.
	Searched bool
	// Accounted is the number of the last revision that the record takes into account, zero
	// for kinds without numbers.
	Accounted int64
}

// Revision is what one ReplicaSet or ControllerRevision of a workload tells.
type Revision struct {
	Name    string
	Created time.Time
	// Number is the latest that it had, zero for a ControllerRevision; Earlier are those
	// before it.
	Number  int64
	Earlier []int64
	// Current is true for the one that new pods of the workload are made from.
	Current bool
	// Shown are the versions that its template shows, and Text is what was written there for
	// them.
	Shown input.Shown
	Text  string
}

// Attributes that pages use:
//   data-copy="TEXT"   on a <button type="button" class="copy">: copies the text.
//   data-dialog="ID"   on a link or button: opens <dialog id="ID">; without JavaScript a link's href leads to the second step.
//   data-close         on a <button type="button"> in a dialog: closes it.
// A page is made again while it is open, and morphed: give repeated elements an id, so they keep their place.
// What a user typed, and <details> and <dialog> that a user opened, stay as they are.

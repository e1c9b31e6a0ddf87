/** Dive into Deep Learning's attention classes, for the Deep Java Library. */
package d2l;
